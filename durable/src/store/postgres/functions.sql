-- The functions of the newest schema. They replace older ones whenever the tables are created or
-- brought up to date; what has other columns than before is dropped by the step that changes it.
-- {schema} stands for the schema's name.

-- Carries out changes in their order. The codes of `op` and `answer` are those of rows.rs.
CREATE OR REPLACE FUNCTION {schema}.apply(
    origin bigint, needed bigint[],
    ops bigint[], numbers bigint[], borns bigint[], versions bigint[], fences bigint[], dues bigint[],
    ats bigint[], kinds bytea[], keys bytea[], recurrences bytea[], failures bytea[], payloads bytea[]
) RETURNS TABLE (
    o_answer bigint, o_number bigint, o_born bigint, o_version bigint, o_due bigint, o_fence bigint,
    o_attempts bigint, o_dead boolean, o_kind bytea, o_key bytea, o_recurrence bytea,
    o_failure bytea, o_payload bytea, o_token bigint
) LANGUAGE plpgsql AS $function$
DECLARE
    c record;
    job {schema}.jobs;
    answer bigint;
    held bigint[];
    owners bigint[];
    leaves boolean[];
    tokens bigint[];
    count_of_shards bigint;
    s int;
    fresh bigint;
    reaches bigint;
    is_fenced boolean;
    news text := '';
BEGIN
    held := ARRAY(SELECT l.fence FROM {schema}.leases l WHERE l.fence = ANY (needed) FOR KEY SHARE);
    -- Read after the lock: each statement sees what was committed before it.
    SELECT array_agg(w.fence ORDER BY w.shard), array_agg(w.leaving ORDER BY w.shard),
            array_agg(w.token ORDER BY w.shard), count(*)
        INTO owners, leaves, tokens, count_of_shards FROM {schema}.shards w;
    SELECT max(l.reach) INTO reaches FROM {schema}.leases l WHERE l.fence <> origin;
    reaches := reaches + reaches / 2 + (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

    FOR c IN SELECT * FROM unnest(ops, numbers, borns, versions, fences, dues, ats, kinds, keys,
            recurrences, failures, payloads) AS u(op, number, born, version, fence, due, at, kind,
            key, recurrence, failure, payload)
    LOOP
        job := NULL;
        answer := 8;
        s := c.number % count_of_shards + 1;
        is_fenced := c.op BETWEEN 8 AND 11 AND NOT c.fence = ANY (held);
        IF is_fenced THEN
            answer := 9;
        ELSIF c.op BETWEEN 8 AND 11 AND owners[s] <> c.fence THEN
            -- The shard was handed over: for this node the job is gone.
            answer := 8;
        ELSIF c.op <= 3 THEN
            LOOP
                IF c.key IS NOT NULL THEN
                    SELECT * INTO job FROM {schema}.jobs j
                        WHERE j.kind = c.kind AND j.key = c.key AND NOT j.dead FOR UPDATE;
                    IF FOUND THEN
                        answer := 4 - c.op;
                        EXIT WHEN c.op < 3;
                        UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, attempts = 0,
                            recurrence = c.recurrence, failure = NULL, payload = c.payload
                            WHERE j.number = job.number RETURNING * INTO job;
                        EXIT;
                    END IF;
                END IF;
                s := nextval('{schema}.numbers') % count_of_shards;
                INSERT INTO {schema}.jobs (number, born, shard, due, kind, key, recurrence, payload)
                    VALUES (currval('{schema}.numbers'), c.due, s, c.due, c.kind, c.key, c.recurrence, c.payload)
                    ON CONFLICT (kind, key) WHERE key IS NOT NULL AND NOT dead DO NOTHING
                    RETURNING * INTO job;
                answer := 1;
                EXIT WHEN FOUND;
            END LOOP;
        ELSIF c.op = 4 THEN
            DELETE FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born AND NOT j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 4; END IF;
        ELSIF c.op = 5 THEN
            DELETE FROM {schema}.jobs j WHERE j.kind = c.kind AND j.key = c.key AND NOT j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 4; END IF;
        ELSIF c.op = 6 THEN
            UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1
                WHERE j.number = c.number AND j.born = c.born AND NOT j.dead RETURNING * INTO job;
            IF FOUND THEN answer := 1; END IF;
        ELSIF c.op = 7 THEN
            UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1
                WHERE j.kind = c.kind AND j.key = c.key AND NOT j.dead RETURNING * INTO job;
            IF FOUND THEN answer := 1; END IF;
        ELSIF c.op = 8 THEN
            UPDATE {schema}.jobs j SET fence = c.fence,
                attempts = j.attempts + CASE WHEN j.fence = c.fence THEN 0 ELSE 1 END
                WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
                    AND (j.fence = c.fence OR NOT leaves[s])
                RETURNING * INTO job;
            IF FOUND THEN
                answer := 6;
            ELSE
                -- An earlier try of this change, whose answer was lost, may have started it.
                UPDATE {schema}.jobs j SET fence = 0
                    WHERE j.number = c.number AND j.born = c.born AND j.fence = c.fence AND NOT j.dead;
                IF NOT leaves[s] THEN
                    SELECT * INTO job FROM {schema}.jobs j
                        WHERE j.number = c.number AND j.born = c.born AND NOT j.dead;
                    IF FOUND THEN answer := 7; END IF;
                END IF;
            END IF;
        ELSIF c.op = 9 THEN
            DELETE FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born
                AND j.version = c.version AND NOT j.dead RETURNING * INTO job;
            IF FOUND THEN answer := 4; END IF;
        ELSIF c.op = 10 THEN
            UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, fence = 0,
                attempts = CASE WHEN c.failure IS NULL THEN 0 ELSE j.attempts END, failure = c.failure
                WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 1; END IF;
        ELSIF c.op = 11 AND c.due IS NULL THEN
            UPDATE {schema}.jobs j SET due = c.at, version = j.version + 1, fence = 0, dead = true,
                failure = c.failure
                WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 4; END IF;
        ELSIF c.op = 11 THEN
            -- The failed occurrence gets a number of its own, and the job goes on.
            fresh := nextval('{schema}.numbers');
            INSERT INTO {schema}.jobs (number, born, shard, due, version, attempts, dead, kind,
                    recurrence, failure, payload)
                SELECT fresh, j.due, fresh % count_of_shards, c.at, j.version + 1, j.attempts, true,
                    j.kind, '\x00', c.failure, j.payload
                FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born
                    AND j.version = c.version AND NOT j.dead FOR UPDATE;
            UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, fence = 0, attempts = 0,
                failure = NULL
                WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 1; END IF;
        ELSIF c.op = 12 THEN
            LOOP
                SELECT * INTO job FROM {schema}.jobs j
                    WHERE j.number = c.number AND j.born = c.born AND j.dead FOR UPDATE;
                EXIT WHEN NOT FOUND;
                IF job.key IS NOT NULL AND EXISTS (SELECT 1 FROM {schema}.jobs j
                    WHERE j.kind = job.kind AND j.key = job.key AND NOT j.dead)
                THEN
                    SELECT * INTO job FROM {schema}.jobs j
                        WHERE j.kind = job.kind AND j.key = job.key AND NOT j.dead;
                    answer := 3;
                    EXIT WHEN FOUND;
                ELSE
                    BEGIN
                        UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, fence = 0,
                            attempts = 0, failure = NULL, dead = false
                            WHERE j.number = c.number RETURNING * INTO job;
                        answer := 1;
                        EXIT;
                    EXCEPTION WHEN unique_violation THEN
                        -- Another node has just stored a job with the key.
                    END;
                END IF;
            END LOOP;
        ELSIF c.op = 13 THEN
            DELETE FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born AND j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 4; END IF;
        END IF;

        -- An outcome of an older version: the move stands, and the job runs no more. A repeated
        -- outcome finds no run, and forgets no attempt.
        IF answer = 8 AND c.op BETWEEN 9 AND 11 AND owners[s] = c.fence THEN
            UPDATE {schema}.jobs j SET fence = 0,
                attempts = CASE WHEN j.fence = 0 THEN j.attempts ELSE 0 END
                WHERE j.number = c.number AND j.born = c.born AND NOT j.dead RETURNING * INTO job;
            IF FOUND THEN answer := 7; END IF;
        END IF;
        IF c.op IN (4, 5) AND answer = 4 AND job.fence <> 0 AND job.fence = owners[job.shard + 1] THEN
            answer := 5;
        END IF;
        IF answer = 1 AND job.due < reaches AND owners[job.shard + 1] <> origin AND length(news) < 7000 THEN
            news := news || format(' %s:%s:%s:%s', job.number, job.born, job.version, job.due);
        END IF;

        o_answer := answer;
        o_number := job.number;
        o_born := job.born;
        o_version := job.version;
        o_due := job.due;
        o_fence := job.fence;
        o_attempts := job.attempts;
        o_dead := job.dead;
        o_kind := job.kind;
        o_key := job.key;
        o_recurrence := job.recurrence;
        o_failure := job.failure;
        o_payload := job.payload;
        o_token := tokens[s];
        RETURN NEXT;
    END LOOP;
    IF length(news) >= 7000 THEN
        PERFORM pg_notify('tickwheel_{schema}', 'load');
    ELSIF news <> '' THEN
        PERFORM pg_notify('tickwheel_{schema}', 'placed' || news);
    END IF;
END
$function$;

-- Removes leases that have run out, and moves shards, so that each node has its share. The
-- caller holds the lock.
CREATE OR REPLACE FUNCTION {schema}.balance(me bigint) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    total bigint;
    members bigint;
    mine bigint;
    wanting bigint;
    surplus bigint;
    w record;
    other bigint;
    has_moved boolean := false;
    soon bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 60000000;
BEGIN
    -- A lease that is granted here may be so short that it has ended already.
    DELETE FROM {schema}.leases l WHERE l.ends <= clock_timestamp() AND l.fence <> me;
    UPDATE {schema}.shards s SET fence = 0, leaving = false
        WHERE s.fence <> 0 AND NOT EXISTS (SELECT 1 FROM {schema}.leases l WHERE l.fence = s.fence);
    SELECT count(*) INTO members FROM {schema}.leases;
    SELECT count(*), count(*) FILTER (WHERE s.fence = me) INTO total, mine FROM {schema}.shards s;

    UPDATE {schema}.shards s SET fence = me, token = nextval('{schema}.fences') WHERE s.shard IN (SELECT f.shard FROM {schema}.shards f
        WHERE f.fence = 0 ORDER BY f.shard
        LIMIT greatest((total + members - 1) / members - mine, 0));
    SELECT count(*) FILTER (WHERE s.fence = me) INTO mine FROM {schema}.shards s;

    -- What others lack, and what this node has beyond its share.
    SELECT coalesce(sum(greatest(total / members - h.has, 0)), 0) INTO wanting FROM
        (SELECT count(s.shard) AS has FROM {schema}.leases l LEFT JOIN {schema}.shards s
            ON s.fence = l.fence WHERE l.fence <> me GROUP BY l.fence) h;
    surplus := greatest(mine - (total + members - 1) / members, least(mine - total / members, wanting), 0);
    UPDATE {schema}.shards s SET leaving = NOT s.leaving WHERE s.fence = me AND s.leaving <>
        (s.shard IN (SELECT f.shard FROM {schema}.shards f WHERE f.fence = me
            ORDER BY f.leaving DESC, f.shard DESC LIMIT surplus));
    IF surplus = 0 THEN
        RETURN;
    END IF;

    -- Waits for commits that have started jobs before they could see that the shard leaves.
    PERFORM 1 FROM {schema}.leases l WHERE l.fence = me FOR UPDATE;
    FOR w IN SELECT s.shard FROM {schema}.shards s WHERE s.fence = me AND s.leaving AND NOT EXISTS
        (SELECT 1 FROM {schema}.jobs j WHERE j.shard = s.shard AND NOT j.dead AND j.due < soon AND j.fence = me)
    LOOP
        SELECT l.fence INTO other FROM {schema}.leases l WHERE l.fence <> me
            ORDER BY (SELECT count(*) FROM {schema}.shards s WHERE s.fence = l.fence), l.fence LIMIT 1;
        UPDATE {schema}.shards s SET fence = other, token = nextval('{schema}.fences'), leaving = false
            WHERE s.shard = w.shard;
        has_moved := true;
    END LOOP;
    IF has_moved THEN
        PERFORM pg_notify('tickwheel_{schema}', 'members');
    END IF;
END
$function$;

-- What a node is to know after it has taken or renewed its lease, in rows of four numbers:
-- its fence and the microseconds until the next lease of another node ends; its shards; jobs
-- that are due soon.
CREATE OR REPLACE FUNCTION {schema}.news(me bigint) RETURNS TABLE (what bigint, a bigint, b bigint, c bigint, d bigint)
LANGUAGE sql AS $function$
    SELECT 1::bigint, me, (SELECT (extract(epoch FROM min(l.ends) - clock_timestamp()) * 1000000)::bigint
        FROM {schema}.leases l WHERE l.fence <> me),
        (SELECT count(*) FROM {schema}.shards s WHERE s.fence = me AND s.leaving),
        (SELECT count(*) FROM {schema}.shards)
    UNION ALL
    SELECT 2, s.shard, 0, 0, 0 FROM {schema}.shards s WHERE s.fence = me AND NOT s.leaving
    UNION ALL
    SELECT 3, j.number, j.born, j.version, j.due FROM {schema}.shards s, LATERAL
        (SELECT * FROM {schema}.jobs k WHERE k.shard = s.shard AND NOT k.dead AND k.fence <> me
            AND k.due < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 10000000
            ORDER BY k.due, k.number LIMIT 100) j
        WHERE s.fence = me AND NOT s.leaving
$function$;

CREATE OR REPLACE FUNCTION {schema}.acquire(named bytea, length bigint, reach_of bigint)
RETURNS TABLE (what bigint, a bigint, b bigint, c bigint, d bigint) LANGUAGE plpgsql AS $function$
DECLARE
    me bigint;
BEGIN
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    me := nextval('{schema}.fences');
    DELETE FROM {schema}.leases l WHERE l.owner = named;
    INSERT INTO {schema}.leases VALUES (me, named, reach_of,
        clock_timestamp() + length * interval '1 microsecond');
    PERFORM {schema}.balance(me);
    PERFORM pg_notify('tickwheel_{schema}', 'members');
    RETURN QUERY SELECT * FROM {schema}.news(me);
END
$function$;

-- Returns no row if the lease was lost.
CREATE OR REPLACE FUNCTION {schema}.renew(me bigint, length bigint)
RETURNS TABLE (what bigint, a bigint, b bigint, c bigint, d bigint) LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    UPDATE {schema}.leases l SET ends = clock_timestamp() + length * interval '1 microsecond'
        WHERE l.fence = me AND l.ends > clock_timestamp();
    IF FOUND THEN
        PERFORM {schema}.balance(me);
        RETURN QUERY SELECT * FROM {schema}.news(me);
    END IF;
END
$function$;

-- The first jobs of a node's shards. Of a shard that leaves, those that the node has started.
CREATE OR REPLACE FUNCTION {schema}.due_before(me bigint, before bigint, most bigint)
RETURNS TABLE (o_number bigint, o_born bigint, o_version bigint, o_due bigint, o_fence bigint) LANGUAGE sql AS $function$
    SELECT j.number, j.born, j.version, j.due, j.fence FROM {schema}.shards s, LATERAL
        (SELECT * FROM {schema}.jobs k WHERE k.shard = s.shard AND NOT k.dead AND k.due < before
            AND (k.fence = me OR NOT s.leaving)
            ORDER BY k.due, k.number LIMIT most) j
        WHERE s.fence = me ORDER BY j.due, j.number LIMIT most
$function$;

-- Ends a lease at once. The others hear of it and share its shards.
CREATE OR REPLACE FUNCTION {schema}.give_back(me bigint) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    DELETE FROM {schema}.leases l WHERE l.fence = me;
    PERFORM pg_notify('tickwheel_{schema}', 'members');
END
$function$;
