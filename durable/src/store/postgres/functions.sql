-- The functions. {schema} stands for the schema's name.
--
-- Each statement is bounded by an index, whatever the tables hold. Statistics that are older than
-- the rows must not change that, so the functions that read jobs forbid sequential scans. What that
-- adds to the costs of small tables must not start the compiler.

-- The microseconds since 1970, by the clock that decides when jobs are due and leases end.
CREATE FUNCTION {schema}.now_micros() RETURNS bigint LANGUAGE sql VOLATILE AS
$function$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $function$;

-- Adds the shards of kinds that have none.
CREATE FUNCTION {schema}.add_kinds(named bytea[]) RETURNS void LANGUAGE sql AS $function$
    INSERT INTO {schema}.shards (kind, part)
        SELECT k.kind, p.part FROM unnest(named) AS k(kind), {schema}.tickwheel_durable d,
            generate_series(0, d.parts - 1) AS p(part)
        WHERE NOT EXISTS (SELECT 1 FROM {schema}.shards s WHERE s.kind = k.kind)
        ORDER BY k.kind, p.part
        ON CONFLICT DO NOTHING
$function$;

-- Locks what a batch changes, in one order, so that batches of several nodes do not wait for each
-- other in a circle: first groups of keys, because their jobs may not exist yet, then jobs.
CREATE FUNCTION {schema}.lock_jobs(asked bigint[], kinds bytea[], keys bytea[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('{schema}'), g.number) FROM (
        SELECT DISTINCT hashtext(encode(u.kind || u.key, 'hex')) % 64 AS number
        FROM unnest(kinds, keys) AS u(kind, key) WHERE u.key IS NOT NULL ORDER BY 1) g;
    PERFORM 1 FROM {schema}.jobs j WHERE j.number IN (
            SELECT unnest(asked)
            UNION ALL
            SELECT k.number FROM unnest(kinds, keys) AS u(kind, key) JOIN {schema}.jobs k
                ON k.kind = u.kind AND k.key = u.key AND k.key IS NOT NULL AND NOT k.dead)
        ORDER BY j.number FOR UPDATE;
END
$function$;

-- Carries out changes in their order. The codes of `op` and `answer` are those of rows.rs.
CREATE FUNCTION {schema}.apply(
    origin bigint, needed bigint[],
    ops bigint[], numbers bigint[], borns bigint[], versions bigint[], fences bigint[], dues bigint[],
    ats bigint[], kinds bytea[], keys bytea[], recurrences bytea[], failures bytea[], payloads bytea[]
) RETURNS TABLE (
    o_answer bigint, o_number bigint, o_born bigint, o_version bigint, o_due bigint, o_fence bigint,
    o_attempts bigint, o_dead boolean, o_kind bytea, o_key bytea, o_recurrence bytea,
    o_failure bytea, o_payload bytea, o_token bigint, o_here boolean
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
DECLARE
    c record;
    job {schema}.jobs;
    own {schema}.shards;
    answer bigint;
    held bigint[];
    count_of_parts bigint;
    fresh bigint;
    reaches bigint;
    news text := '';
BEGIN
    held := ARRAY(SELECT l.fence FROM {schema}.leases l WHERE l.fence = ANY (needed) FOR KEY SHARE);
    SELECT d.parts INTO count_of_parts FROM {schema}.tickwheel_durable d;
    SELECT max(l.reach) INTO reaches FROM {schema}.leases l WHERE l.fence <> origin;
    reaches := reaches + reaches / 2 + {schema}.now_micros();
    IF array_length(ops, 1) > 1 THEN
        PERFORM {schema}.lock_jobs(numbers, kinds, keys);
    END IF;

    FOR c IN SELECT * FROM unnest(ops, numbers, borns, versions, fences, dues, ats, kinds, keys,
            recurrences, failures, payloads) AS u(op, number, born, version, fence, due, at, kind,
            key, recurrence, failure, payload)
    LOOP
        job := NULL;
        own := NULL;
        answer := 8;
        IF c.op BETWEEN 8 AND 11 THEN
            -- Read after the lock of the lease: each statement sees what was committed before it.
            SELECT s.* INTO own FROM {schema}.jobs j JOIN {schema}.shards s ON s.shard = j.shard
                WHERE j.number = c.number;
        END IF;
        IF c.op BETWEEN 8 AND 11 AND NOT c.fence = ANY (held) THEN
            answer := 9;
        ELSIF c.op BETWEEN 8 AND 11 AND own.fence IS DISTINCT FROM c.fence THEN
            -- The shard was handed over: for this node the job is gone.
            answer := 8;
        ELSIF c.op <= 3 THEN
            fresh := nextval('{schema}.numbers');
            SELECT * INTO own FROM {schema}.shards s
                WHERE s.kind = c.kind AND s.part = fresh % count_of_parts;
            IF NOT FOUND THEN
                PERFORM {schema}.add_kinds(ARRAY[c.kind]);
                SELECT * INTO own FROM {schema}.shards s
                    WHERE s.kind = c.kind AND s.part = fresh % count_of_parts;
            END IF;
            LOOP
                IF c.key IS NOT NULL THEN
                    -- What is kept is not locked: the caller's transaction may last.
                    SELECT * INTO job FROM {schema}.jobs j
                        WHERE j.kind = c.kind AND j.key = c.key AND NOT j.dead;
                    IF FOUND AND c.op IN (1, 2) THEN
                        answer := 4 - c.op;
                        EXIT;
                    ELSIF FOUND AND c.op = 0 AND (job.recurrence = c.recurrence OR get_byte(c.recurrence, 0) = 1
                        -- The period, which the phase follows.
                        AND substring(job.recurrence FOR 9) = substring(c.recurrence FOR 9))
                    THEN
                        UPDATE {schema}.jobs j SET payload = c.payload
                            WHERE j.number = job.number AND NOT j.dead RETURNING * INTO job;
                        answer := 1;
                        EXIT WHEN FOUND;
                    ELSIF FOUND THEN
                        UPDATE {schema}.jobs j SET version = j.version + 1, attempts = 0,
                            -- What is overdue stays so in an update.
                            due = CASE WHEN c.op = 0 AND j.due <= {schema}.now_micros() THEN j.due ELSE c.due END,
                            recurrence = c.recurrence, failure = NULL, payload = c.payload
                            WHERE j.number = job.number AND NOT j.dead RETURNING * INTO job;
                        answer := 1;
                        EXIT WHEN FOUND;
                    END IF;
                END IF;
                INSERT INTO {schema}.jobs (number, born, shard, due, kind, key, recurrence, payload)
                    VALUES (fresh, c.due, own.shard, c.due, c.kind, c.key, c.recurrence, c.payload)
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
                    AND (j.fence = c.fence OR NOT own.leaving)
                RETURNING * INTO job;
            IF FOUND THEN
                answer := 6;
            ELSE
                -- An earlier try of this change, whose answer was lost, may have started it.
                UPDATE {schema}.jobs j SET fence = 0
                    WHERE j.number = c.number AND j.born = c.born AND j.fence = c.fence AND NOT j.dead;
                IF NOT own.leaving THEN
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
                SELECT fresh, j.due, (SELECT s.shard FROM {schema}.shards s
                        WHERE s.kind = j.kind AND s.part = fresh % count_of_parts), c.at, j.version + 1, j.attempts, true,
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
        IF answer = 8 AND c.op BETWEEN 9 AND 11 AND own.fence = c.fence THEN
            UPDATE {schema}.jobs j SET fence = 0,
                attempts = CASE WHEN j.fence = 0 THEN j.attempts ELSE 0 END
                WHERE j.number = c.number AND j.born = c.born AND NOT j.dead RETURNING * INTO job;
            IF FOUND THEN answer := 7; END IF;
        END IF;
        IF own.shard IS DISTINCT FROM job.shard THEN
            SELECT * INTO own FROM {schema}.shards s WHERE s.shard = job.shard;
        END IF;
        IF c.op IN (4, 5) AND answer = 4 AND job.fence <> 0 AND job.fence = own.fence THEN
            answer := 5;
        END IF;
        IF answer = 1 AND job.due < reaches AND own.fence <> origin AND length(news) < 7000 THEN
            news := news || format(' %s:%s:%s:%s:%s', job.number, job.born, job.version, job.due, job.shard);
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
        -- Bytes go back to those who need them: handlers, and callers that remove a job.
        o_payload := CASE WHEN c.op IN (4, 5, 8, 13) THEN job.payload ELSE '' END;
        o_token := own.token;
        o_here := own.fence = origin AND NOT own.leaving;
        RETURN NEXT;
    END LOOP;
    IF length(news) >= 7000 THEN
        PERFORM pg_notify('tickwheel_{schema}', 'load');
    ELSIF news <> '' THEN
        PERFORM pg_notify('tickwheel_{schema}', 'placed' || news);
    END IF;
END
$function$;

-- The shards of a kind that each of its nodes has.
CREATE FUNCTION {schema}.shares(named bytea) RETURNS TABLE (fence bigint, has bigint) LANGUAGE sql AS $function$
    SELECT l.fence, count(s.shard) FROM {schema}.leases l LEFT JOIN {schema}.shards s
        ON s.fence = l.fence AND s.kind = named WHERE named = ANY (l.kinds) GROUP BY l.fence
$function$;

-- Moves shards of a kind, so that each node that handles it has its share. Returns whether
-- another node has one more. The caller holds the lock.
CREATE FUNCTION {schema}.balance_kind(me bigint, named bytea) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
DECLARE
    total bigint;
    members bigint;
    mine bigint;
    wanting bigint;
    surplus bigint;
    w record;
    other bigint;
    has_moved boolean := false;
BEGIN
    SELECT d.parts INTO total FROM {schema}.tickwheel_durable d;
    SELECT count(*), sum(h.has) FILTER (WHERE h.fence = me) INTO members, mine FROM {schema}.shares(named) h;
    UPDATE {schema}.shards s SET fence = me, token = nextval('{schema}.fences')
        WHERE s.shard IN (SELECT f.shard FROM {schema}.shards f
            WHERE f.kind = named AND f.fence = 0 ORDER BY f.part
            LIMIT greatest((total + members - 1) / members - mine, 0));

    -- What others lack, and what this node has beyond its share.
    SELECT coalesce(sum(greatest(total / members - h.has, 0)) FILTER (WHERE h.fence <> me), 0),
            sum(h.has) FILTER (WHERE h.fence = me)
        INTO wanting, mine FROM {schema}.shares(named) h;
    surplus := greatest(mine - (total + members - 1) / members, least(mine - total / members, wanting), 0);
    UPDATE {schema}.shards s SET leaving = NOT s.leaving
        WHERE s.kind = named AND s.fence = me AND s.leaving <>
            (s.shard IN (SELECT f.shard FROM {schema}.shards f WHERE f.kind = named AND f.fence = me
                ORDER BY f.leaving DESC, f.part DESC LIMIT surplus));
    IF surplus = 0 THEN
        RETURN false;
    END IF;

    -- Waits for commits that have started jobs before they could see that the shard leaves.
    PERFORM 1 FROM {schema}.leases l WHERE l.fence = me FOR UPDATE;
    FOR w IN SELECT s.shard FROM {schema}.shards s WHERE s.kind = named AND s.fence = me AND s.leaving
        AND NOT EXISTS (SELECT 1 FROM {schema}.jobs j WHERE j.shard = s.shard AND j.fence = me AND j.fence <> 0)
    LOOP
        SELECT h.fence INTO other FROM {schema}.shares(named) h WHERE h.fence <> me
            ORDER BY h.has, h.fence LIMIT 1;
        UPDATE {schema}.shards s SET fence = other, token = nextval('{schema}.fences'), leaving = false
            WHERE s.shard = w.shard;
        has_moved := true;
    END LOOP;
    RETURN has_moved;
END
$function$;

-- Removes leases that have run out, and moves shards. Returns what the node is to know then, in
-- rows of two numbers: how many of its shards leave (0), and its other shards (1).
CREATE FUNCTION {schema}.balance(me bigint) RETURNS TABLE (what bigint, number bigint) LANGUAGE plpgsql AS $function$
DECLARE
    named bytea;
    has_moved boolean := false;
BEGIN
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    DELETE FROM {schema}.leases l WHERE l.ends <= clock_timestamp() AND l.fence <> me;
    -- The others take their part of what it had.
    has_moved := FOUND;
    UPDATE {schema}.shards s SET fence = 0, leaving = false
        WHERE s.fence <> 0 AND NOT EXISTS (SELECT 1 FROM {schema}.leases l WHERE l.fence = s.fence);
    FOR named IN SELECT unnest(l.kinds) FROM {schema}.leases l WHERE l.fence = me LOOP
        has_moved := {schema}.balance_kind(me, named) OR has_moved;
    END LOOP;
    IF has_moved THEN
        PERFORM pg_notify('tickwheel_{schema}', 'members');
    END IF;
    RETURN QUERY
        SELECT 0::bigint, count(*) FROM {schema}.shards s WHERE s.fence = me AND s.leaving
        UNION ALL
        SELECT 1, s.shard FROM {schema}.shards s WHERE s.fence = me AND NOT s.leaving;
END
$function$;

-- Returns the fence of a new lease, which has no shards yet.
CREATE FUNCTION {schema}.acquire(named bytea, kinds bytea[], length bigint, reach bigint)
RETURNS bigint LANGUAGE plpgsql AS $function$
DECLARE
    me bigint;
BEGIN
    PERFORM {schema}.add_kinds(kinds);
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    me := nextval('{schema}.fences');
    DELETE FROM {schema}.leases l WHERE l.owner = named;
    INSERT INTO {schema}.leases VALUES (me, named, kinds, reach,
        clock_timestamp() + length * interval '1 microsecond');
    PERFORM pg_notify('tickwheel_{schema}', 'members');
    RETURN me;
END
$function$;

-- Extends a lease: one row is written, and those of the other nodes are read. Returns the time,
-- and the microseconds until the next lease of another node ends; or no row if the lease was lost.
CREATE FUNCTION {schema}.renew(me bigint, length bigint) RETURNS TABLE (now bigint, until_end bigint)
LANGUAGE sql AS $function$
    UPDATE {schema}.leases l SET ends = clock_timestamp() + length * interval '1 microsecond'
        WHERE l.fence = me AND l.ends > clock_timestamp()
        RETURNING {schema}.now_micros(),
            (SELECT (extract(epoch FROM min(o.ends) - clock_timestamp()) * 1000000)::bigint
                FROM {schema}.leases o WHERE o.fence <> me)
$function$;

-- The first jobs of a node's shards, and up to which due time these are all, unless they are all
-- before `before`. Of each shard its part of the whole is read, and what is due later than the
-- first job that was not read is left out. Of a shard that leaves, and beyond its part of any
-- shard, those that the node has started are read, too.
CREATE FUNCTION {schema}.due_before(me bigint, before bigint, most bigint)
RETURNS TABLE (o_number bigint, o_born bigint, o_version bigint, o_due bigint, o_fence bigint, o_until bigint)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    WITH own AS MATERIALIZED (
        SELECT s.shard, most / count(*) OVER () + 64 AS share
        FROM {schema}.shards s WHERE s.fence = me AND NOT s.leaving
    ), found AS MATERIALIZED (
        SELECT own.shard, own.share, j.* FROM own, LATERAL (
            SELECT k.number, k.born, k.version, k.due, k.fence FROM {schema}.jobs k
            WHERE k.shard = own.shard AND NOT k.dead AND k.due < before AND k.fence <> me
            ORDER BY k.due, k.number LIMIT own.share) j
        UNION ALL
        SELECT s.shard, NULL, k.number, k.born, k.version, k.due, k.fence
        FROM {schema}.shards s JOIN {schema}.jobs k ON k.shard = s.shard AND k.fence = me
        WHERE s.fence = me AND k.fence <> 0 AND k.due < before
    ), cut AS MATERIALIZED (
        SELECT min(f.due) AS due FROM (
            SELECT max(f.due) AS due FROM found f WHERE f.share IS NOT NULL GROUP BY f.shard HAVING count(*) >= min(f.share)
            UNION ALL
            (SELECT f.due FROM found f ORDER BY f.due, f.number OFFSET most - 1 LIMIT 1)) f
    )
    SELECT f.number, f.born, f.version, f.due, f.fence, cut.due FROM found f, cut
        WHERE cut.due IS NULL OR f.due <= cut.due ORDER BY f.due, f.number LIMIT most
$function$;

-- The kinds whose jobs no node handles, and when the first of them is due.
CREATE FUNCTION {schema}.unhandled() RETURNS TABLE (o_kind bytea, o_due bigint)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    SELECT s.kind, min(j.due) FROM {schema}.shards s, LATERAL (
            SELECT k.due FROM {schema}.jobs k WHERE k.shard = s.shard AND NOT k.dead
            ORDER BY k.due, k.number LIMIT 1) j
        WHERE NOT EXISTS (SELECT 1 FROM {schema}.leases l
            WHERE s.kind = ANY (l.kinds) AND l.ends > clock_timestamp())
        GROUP BY s.kind ORDER BY s.kind
$function$;

-- Ends a lease at once. The others hear of it and share its shards.
CREATE FUNCTION {schema}.give_back(me bigint) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    DELETE FROM {schema}.leases l WHERE l.fence = me;
    PERFORM pg_notify('tickwheel_{schema}', 'members');
END
$function$;

-- Stores a job in the caller's transaction, from any language; it runs after the commit. If a job
-- of the kind has the key, `if_taken` says what happens: refuse, keep, replace or update. Returns the two
-- numbers of the id, and whether it is that of another job, which has refused this one.
CREATE FUNCTION {schema}.enqueue(kind text, payload bytea, due timestamptz DEFAULT clock_timestamp(),
    key text DEFAULT NULL, if_taken text DEFAULT 'refuse', recurrence bytea DEFAULT '\x00')
RETURNS TABLE (number bigint, born bigint, is_taken boolean) LANGUAGE plpgsql AS $function$
DECLARE
    op int := array_position(ARRAY['update', 'refuse', 'keep', 'replace'], if_taken) - 1;
    micros bigint := ceil(extract(epoch FROM due) * 1000000);
BEGIN
    IF op IS NULL OR octet_length(convert_to(kind, 'UTF8')) > 256
        OR octet_length(convert_to(key, 'UTF8')) > 1024 OR octet_length(payload) > 16777216
    THEN
        RAISE invalid_parameter_value USING MESSAGE = 'if_taken is refuse, keep, replace or update; a kind has at most '
            '256 bytes, a key 1,024, a payload 16 MiB';
    END IF;
    RETURN QUERY SELECT a.o_number, a.o_born, a.o_answer = 3 FROM {schema}.apply(0, '{}', ARRAY[op::bigint],
        '{0}', '{0}', '{0}', '{0}', ARRAY[micros], '{NULL}', ARRAY[convert_to(kind, 'UTF8')],
        ARRAY[convert_to(key, 'UTF8')], ARRAY[recurrence], ARRAY[NULL::bytea], ARRAY[payload]) a;
END
$function$;
