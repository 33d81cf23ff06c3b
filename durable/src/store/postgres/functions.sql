-- The functions. {schema} stands for the schema's name.
--
-- Each statement is bounded by an index, whatever the tables hold. Statistics that are older than
-- the rows must not change that, so the functions that read jobs forbid sequential scans. What that
-- adds to the costs of small tables must not start the compiler.

-- The microseconds since 1970, by the clock that decides when jobs are due and leases end.
CREATE FUNCTION {schema}.now_micros() RETURNS bigint LANGUAGE sql VOLATILE AS
$function$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $function$;

-- The shard of the job of a kind with a number. It follows from these, so whoever stores the first job of a
-- kind writes nothing else, and nobody waits for a transaction of that kind.
CREATE FUNCTION {schema}.shard_of(named text, number bigint) RETURNS bigint LANGUAGE sql STABLE AS $function$
    SELECT ('x' || encode(sha256(convert_to(named, 'UTF8')), 'hex'))::bit(52)::bigint * 1024 + number % d.parts
        FROM {schema}.tickwheel_durable d
$function$;

-- The shards in which jobs wait, one step of the index for each, and the first job of each.
CREATE FUNCTION {schema}.first_jobs() RETURNS TABLE (shard bigint, kind text, due bigint) LANGUAGE sql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    WITH RECURSIVE f AS (
        (SELECT j.shard, j.kind, j.due FROM {schema}.jobs j WHERE NOT j.dead ORDER BY j.shard, j.due, j.number LIMIT 1)
        UNION ALL
        SELECT n.* FROM f, LATERAL (SELECT j.shard, j.kind, j.due FROM {schema}.jobs j
            WHERE NOT j.dead AND j.shard > f.shard ORDER BY j.shard, j.due, j.number LIMIT 1) n
    )
    SELECT * FROM f
$function$;

-- The kinds of dead letters, in the same way.
CREATE FUNCTION {schema}.dead_kinds() RETURNS TABLE (kind text) LANGUAGE sql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    WITH RECURSIVE f AS (
        (SELECT j.kind FROM {schema}.jobs j WHERE j.dead ORDER BY j.kind, j.due, j.number LIMIT 1)
        UNION ALL
        SELECT n.kind FROM f, LATERAL (SELECT j.kind FROM {schema}.jobs j
            WHERE j.dead AND j.kind > f.kind ORDER BY j.kind, j.due, j.number LIMIT 1) n
    )
    SELECT * FROM f
$function$;

-- Locks what a batch changes, in one order, so that batches of several nodes do not wait for each
-- other in a circle: first groups of keys, because their jobs may not exist yet, then jobs, then
-- limited kinds of which it starts some.
CREATE FUNCTION {schema}.lock_batch(batch {schema}.change[]) RETURNS void LANGUAGE plpgsql AS $function$
BEGIN
    IF array_length(batch, 1) > 1 THEN
        PERFORM pg_advisory_xact_lock(hashtext('{schema}'), g.number) FROM (
            SELECT DISTINCT hashtext(c.kind || ' ' || c.key) % 64 AS number FROM unnest(batch) c
            WHERE c.key IS NOT NULL ORDER BY 1) g;
        PERFORM 1 FROM {schema}.jobs j WHERE j.number IN (
                SELECT c.number FROM unnest(batch) c
                UNION ALL
                SELECT k.number FROM unnest(batch) c JOIN {schema}.jobs k
                    ON k.kind = c.kind AND k.key = c.key AND k.key IS NOT NULL AND NOT k.dead)
            ORDER BY j.number FOR UPDATE;
    END IF;
    IF EXISTS (SELECT 1 FROM {schema}.kinds k WHERE k.most IS NOT NULL) THEN
        PERFORM 1 FROM {schema}.kinds k WHERE k.most IS NOT NULL AND k.kind IN (
                SELECT j.kind FROM unnest(batch) c JOIN {schema}.jobs j ON j.number = c.number WHERE c.op = 'start')
            ORDER BY k.kind FOR UPDATE;
    END IF;
END
$function$;

-- Stores a job, or does to the one that has its key what `if_taken` says.
CREATE FUNCTION {schema}.insert_job(c {schema}.change, bytes bytea, OUT answer text, OUT job {schema}.jobs)
LANGUAGE plpgsql AS $function$
DECLARE
    fresh bigint := nextval('{schema}.numbers');
BEGIN
    LOOP
        IF c.key IS NOT NULL THEN
            -- What is kept is not locked: the caller's transaction may last. What is not kept is read after a start
            -- or an outcome that has its row now.
            PERFORM 1 FROM {schema}.jobs j WHERE c.if_taken IN ('replace', 'update')
                AND j.kind = c.kind AND j.key = c.key AND NOT j.dead FOR UPDATE;
            SELECT * INTO job FROM {schema}.jobs j WHERE j.kind = c.kind AND j.key = c.key AND NOT j.dead;
            IF FOUND AND c.if_taken IN ('refuse', 'keep') THEN
                answer := CASE c.if_taken WHEN 'keep' THEN 'kept' ELSE 'taken' END;
                RETURN;
            ELSIF FOUND AND c.if_taken = 'update' AND (job.recurrence IS NOT DISTINCT FROM c.recurrence
                -- The period, which the phase follows.
                OR job.recurrence LIKE 'every %' AND split_part(job.recurrence, ' from ', 1) = split_part(c.recurrence, ' from ', 1)
                -- An occurrence that has begun ends with its own run and attempts.
                OR job.attempts > 0 AND c.recurrence IS NOT NULL)
            THEN
                -- The outcome of a run that knows the old payload must not end the job.
                UPDATE {schema}.jobs j SET payload = bytes, recurrence = CASE split_part(j.recurrence, ' from ', 1)
                        WHEN split_part(c.recurrence, ' from ', 1) THEN j.recurrence ELSE c.recurrence END,
                    version = j.version + CASE WHEN j.fence <> 0 AND j.recurrence IS NULL THEN 1 ELSE 0 END
                    WHERE j.number = job.number AND NOT j.dead RETURNING * INTO job;
            ELSIF FOUND THEN
                UPDATE {schema}.jobs j SET version = j.version + 1, attempts = 0,
                    -- What is overdue stays so in an update, if the new job recurs.
                    due = CASE WHEN c.if_taken = 'update' AND c.recurrence IS NOT NULL AND j.due <= {schema}.now_micros() THEN j.due ELSE c.due END,
                    recurrence = c.recurrence, failure = NULL, payload = bytes
                    WHERE j.number = job.number AND NOT j.dead RETURNING * INTO job;
            END IF;
        END IF;
        IF job.number IS NULL THEN
            INSERT INTO {schema}.jobs (number, born, shard, due, kind, key, recurrence, payload)
                VALUES (fresh, c.due, {schema}.shard_of(c.kind, fresh), c.due, c.kind, c.key, c.recurrence, bytes)
                ON CONFLICT (kind, key) WHERE key IS NOT NULL AND NOT dead DO NOTHING
                RETURNING * INTO job;
        END IF;
        -- If not, another transaction has stored a job with the key, or ended it, just now.
        answer := 'placed';
        EXIT WHEN job.number IS NOT NULL;
    END LOOP;
END
$function$;

-- Notes that a handler is about to run a job, and counts the attempt. If an earlier try of this change,
-- whose answer was lost, has done so, counts nothing.
CREATE FUNCTION {schema}.start_job(c {schema}.change, own {schema}.owners, OUT answer text, OUT job {schema}.jobs)
LANGUAGE plpgsql AS $function$
DECLARE
    running bigint;
BEGIN
    IF own.most IS NOT NULL THEN
        SELECT count(*) INTO running FROM {schema}.shards s JOIN {schema}.jobs j ON j.shard = s.shard AND j.fence = s.fence
            WHERE s.kind = own.kind AND j.fence <> 0 AND j.number <> c.number;
        IF running >= own.most THEN
            answer := 'full';
            RETURN;
        END IF;
    END IF;
    UPDATE {schema}.jobs j SET fence = c.fence,
        attempts = j.attempts + CASE WHEN j.fence = c.fence THEN 0 ELSE 1 END
        WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
            AND (j.fence = c.fence OR NOT own.leaving AND NOT own.paused)
        RETURNING * INTO job;
    answer := 'started';
    IF job.number IS NULL THEN
        -- One that was moved after an earlier try has started it waits.
        UPDATE {schema}.jobs j SET fence = 0
            WHERE j.number = c.number AND j.born = c.born AND j.fence = c.fence AND NOT j.dead;
        SELECT * INTO job FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born AND NOT j.dead
            AND NOT own.leaving AND NOT own.paused;
        answer := CASE WHEN FOUND THEN 'stale' ELSE 'gone' END;
    END IF;
END
$function$;

-- Notes how a run ended: end, again or die. Changes nothing if the job has another recurrence than the one by
-- which that was reckoned.
CREATE FUNCTION {schema}.finish_job(c {schema}.change, OUT answer text, OUT job {schema}.jobs)
LANGUAGE plpgsql AS $function$
DECLARE
    fresh bigint;
BEGIN
    answer := 'placed';
    IF c.op = 'end' THEN
        answer := 'removed';
        DELETE FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born
            AND j.version = c.version AND NOT j.dead
            AND j.recurrence IS NOT DISTINCT FROM c.recurrence RETURNING * INTO job;
    ELSIF c.op = 'again' THEN
        UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, fence = 0,
            attempts = CASE WHEN c.failure IS NULL THEN 0 ELSE j.attempts END, failure = c.failure
            WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
            AND j.recurrence IS NOT DISTINCT FROM c.recurrence RETURNING * INTO job;
    ELSIF c.due IS NULL THEN
        answer := 'removed';
        UPDATE {schema}.jobs j SET due = c.died, version = j.version + 1, fence = 0, dead = true,
            failure = c.failure
            WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
            AND j.recurrence IS NOT DISTINCT FROM c.recurrence RETURNING * INTO job;
    ELSE
        -- The failed occurrence gets a number of its own, and the job goes on.
        fresh := nextval('{schema}.numbers');
        INSERT INTO {schema}.jobs (number, born, shard, due, version, attempts, dead, kind, failure, payload)
            SELECT fresh, j.due, {schema}.shard_of(j.kind, fresh), c.died, j.version + 1, j.attempts, true,
                j.kind, c.failure, j.payload
            FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born
                AND j.version = c.version AND NOT j.dead
                AND j.recurrence IS NOT DISTINCT FROM c.recurrence FOR UPDATE;
        UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, fence = 0, attempts = 0,
            failure = NULL
            WHERE j.number = c.number AND j.born = c.born AND j.version = c.version AND NOT j.dead
            AND j.recurrence IS NOT DISTINCT FROM c.recurrence RETURNING * INTO job;
    END IF;
    IF job.number IS NULL THEN
        answer := 'changed';
        SELECT * INTO job FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born
            AND j.version = c.version AND NOT j.dead;
    END IF;
    IF job.number IS NULL THEN
        -- An outcome of an older version: the move stands, and the job runs no more. A repeated
        -- outcome finds no run, and forgets no attempt.
        UPDATE {schema}.jobs j SET fence = 0, attempts = CASE WHEN j.fence = 0 THEN j.attempts ELSE 0 END
            WHERE j.number = c.number AND j.born = c.born AND NOT j.dead RETURNING * INTO job;
        answer := CASE WHEN FOUND THEN 'stale' ELSE 'gone' END;
    END IF;
END
$function$;

-- Makes a dead letter due again, unless another job has its key.
CREATE FUNCTION {schema}.revive_job(c {schema}.change, OUT answer text, OUT job {schema}.jobs)
LANGUAGE plpgsql AS $function$
DECLARE
    dead {schema}.jobs;
BEGIN
    LOOP
        SELECT * INTO dead FROM {schema}.jobs j
            WHERE j.number = c.number AND j.born = c.born AND j.dead FOR UPDATE;
        answer := 'gone';
        EXIT WHEN NOT FOUND;
        SELECT * INTO job FROM {schema}.jobs j WHERE j.kind = dead.kind AND j.key = dead.key AND NOT j.dead;
        answer := 'taken';
        EXIT WHEN FOUND;
        BEGIN
            UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1, fence = 0,
                attempts = 0, failure = NULL, dead = false
                WHERE j.number = c.number RETURNING * INTO job;
            answer := 'placed';
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- Another node has just stored a job with the key.
        END;
    END LOOP;
END
$function$;

-- Carries out changes in their order. `origin` is the fence of the node that hands them in, and
-- payloads[i] belongs to changes[i]. Changes whose op is start, end, again or die need a lease that lasts.
-- The answers are those of rows.rs.
CREATE FUNCTION {schema}.apply(origin bigint, changes json, payloads bytea[])
RETURNS TABLE (answer text, token bigint, here boolean, job {schema}.jobs)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
DECLARE
    batch {schema}.change[] := ARRAY(SELECT c FROM json_populate_recordset(NULL::{schema}.change, changes) c);
    c {schema}.change;
    own {schema}.owners;
    r {schema}.result;
    held bigint[];
    reaches bigint;
    news text := '';
    i int := 0;
BEGIN
    held := ARRAY(SELECT l.fence FROM {schema}.leases l
        WHERE l.fence = ANY (ARRAY(SELECT b.fence FROM unnest(batch) b) || origin) FOR KEY SHARE);
    -- While there is no other node, one may read its window before this transaction ends.
    SELECT coalesce(max(l.reach) * 3 / 2 + {schema}.now_micros(), 9223372036854775807) INTO reaches
        FROM {schema}.leases l WHERE l.fence <> origin;
    PERFORM {schema}.lock_batch(batch);

    FOREACH c IN ARRAY batch LOOP
        i := i + 1;
        r := NULL;
        job := NULL;
        own := NULL;
        answer := 'gone';
        IF origin = 0 AND c.after IS NOT NULL THEN
            c.due := {schema}.now_micros() + least(c.after, 4611686018427387904);
        END IF;
        IF c.op IN ('start', 'end', 'again', 'die') THEN
            -- Read after the lock of the lease: each statement sees what was committed before it.
            SELECT o.* INTO own FROM {schema}.jobs j JOIN {schema}.owners o ON o.shard = j.shard
                WHERE j.number = c.number;
        ELSIF c.op IN ('cancel', 'move') AND c.key IS NOT NULL THEN
            SELECT j.number, j.born INTO c.number, c.born FROM {schema}.jobs j
                WHERE j.kind = c.kind AND j.key = c.key AND NOT j.dead;
        END IF;

        IF c.op = 'insert' THEN
            SELECT f.answer, f.job INTO r FROM {schema}.insert_job(c, payloads[i]) f;
        ELSIF c.op = 'cancel' THEN
            DELETE FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born AND NOT j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 'removed'; END IF;
        ELSIF c.op = 'move' THEN
            UPDATE {schema}.jobs j SET due = c.due, version = j.version + 1
                WHERE j.number = c.number AND j.born = c.born AND NOT j.dead RETURNING * INTO job;
            IF FOUND THEN answer := 'placed'; END IF;
        ELSIF c.op = 'revive' THEN
            SELECT f.answer, f.job INTO r FROM {schema}.revive_job(c) f;
        ELSIF c.op = 'bury' THEN
            DELETE FROM {schema}.jobs j WHERE j.number = c.number AND j.born = c.born AND j.dead
                RETURNING * INTO job;
            IF FOUND THEN answer := 'removed'; END IF;
        ELSIF c.op = 'pause' THEN
            INSERT INTO {schema}.kinds VALUES (c.kind, NULL, c.paused)
                ON CONFLICT ON CONSTRAINT kinds_pkey DO UPDATE SET paused = c.paused;
            news := rpad(' ', 7000);
            answer := 'set';
        ELSIF NOT c.fence = ANY (held) THEN
            answer := 'fenced';
        ELSIF own.fence IS DISTINCT FROM c.fence THEN
            -- The shard was handed over, so for this node the job is gone.
        ELSIF c.op = 'start' THEN
            SELECT f.answer, f.job INTO r FROM {schema}.start_job(c, own) f;
        ELSE
            SELECT f.answer, f.job INTO r FROM {schema}.finish_job(c) f;
        END IF;

        IF r.answer IS NOT NULL THEN
            answer := r.answer;
            job := r.job;
        END IF;
        IF own.shard IS DISTINCT FROM job.shard THEN
            SELECT * INTO own FROM {schema}.owners o WHERE o.shard = job.shard;
        END IF;
        IF c.op = 'cancel' AND job.fence <> 0 AND job.fence = own.fence THEN
            answer := 'running';
        END IF;
        IF answer = 'placed' AND job.due < reaches AND (own.fence IS DISTINCT FROM origin OR origin = 0) AND length(news) < 7000 THEN
            news := news || format(',[%s,%s,%s,%s,%s,%s]', job.number, job.born, job.version, job.due, job.shard, (job.fence <> 0)::int);
        END IF;
        IF c.op NOT IN ('start', 'cancel', 'bury') THEN
            -- Bytes go back to those who need them: handlers, and callers that remove a job.
            job.payload := '';
        END IF;
        token := own.token;
        here := own.fence = origin AND NOT own.leaving;
        RETURN NEXT;
    END LOOP;
    IF length(news) >= 7000 THEN
        PERFORM pg_notify('tickwheel_{schema}', 'load');
    ELSIF news <> '' THEN
        PERFORM pg_notify('tickwheel_{schema}', format('[%s]', substr(news, 2)));
    END IF;
END
$function$;

-- The shards of a kind that each of its nodes has.
CREATE FUNCTION {schema}.shares(named text) RETURNS TABLE (fence bigint, has bigint) LANGUAGE sql AS $function$
    SELECT l.fence, count(s.shard) FROM {schema}.leases l LEFT JOIN {schema}.shards s
        ON s.fence = l.fence AND s.kind = named WHERE named = ANY (l.kinds) GROUP BY l.fence
$function$;

-- Moves shards of a kind, so that each node that handles it has its share. Returns whether
-- another node has one more. The caller holds the lock.
CREATE FUNCTION {schema}.balance_kind(me bigint, named text) RETURNS boolean LANGUAGE plpgsql
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

-- Removes leases that have run out, and moves shards. Returns the node's shards, and whether they leave.
CREATE FUNCTION {schema}.balance(me bigint) RETURNS TABLE (shard bigint, kind text, leaving boolean)
LANGUAGE plpgsql AS $function$
DECLARE
    named text;
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
    RETURN QUERY SELECT s.shard, s.kind, s.leaving FROM {schema}.shards s WHERE s.fence = me;
END
$function$;

-- Returns the fence of a new lease, which has no shards yet. limits[i] is how many jobs of kinds[i] may run
-- at a time, or null: the last lease that was taken decides.
CREATE FUNCTION {schema}.acquire(named text, kinds text[], limits bigint[], length bigint, reach bigint)
RETURNS bigint LANGUAGE plpgsql AS $function$
DECLARE
    me bigint;
BEGIN
    PERFORM 1 FROM {schema}.tickwheel_durable FOR UPDATE;
    INSERT INTO {schema}.kinds SELECT DISTINCT u.kind FROM unnest(kinds) AS u(kind) ON CONFLICT DO NOTHING;
    INSERT INTO {schema}.shards (shard, kind, part)
        SELECT {schema}.shard_of(u.kind, p.part), u.kind, p.part FROM unnest(kinds) AS u(kind),
            {schema}.tickwheel_durable d, generate_series(0, d.parts - 1) AS p(part)
        ON CONFLICT DO NOTHING;
    me := nextval('{schema}.fences');
    DELETE FROM {schema}.leases l WHERE l.owner = named;
    INSERT INTO {schema}.leases VALUES (me, named, kinds, reach,
        clock_timestamp() + length * interval '1 microsecond');
    UPDATE {schema}.kinds k SET most = u.most FROM unnest(kinds, limits) AS u(kind, most)
        WHERE k.kind = u.kind AND k.most IS DISTINCT FROM u.most;
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

-- The first jobs of some kinds in a node's shards, and up to which due time these are all, unless they are
-- all before `before`. Of each shard its part of the whole is read, and what is due later than the
-- first job that was not read is left out. Of a shard that leaves, and beyond its part of any
-- shard, those that the node has started are read, too.
CREATE FUNCTION {schema}.due_before(me bigint, named text[], before bigint, total bigint)
RETURNS TABLE (number bigint, born bigint, version bigint, due bigint, fence bigint, kind text, until bigint)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    WITH own AS MATERIALIZED (
        SELECT o.shard, o.kind, total / count(*) OVER () + 64 AS share
        FROM {schema}.owners o WHERE o.fence = me AND o.kind = ANY (named) AND NOT o.leaving AND NOT o.paused
    ), found AS MATERIALIZED (
        SELECT own.shard, own.kind, own.share, j.* FROM own, LATERAL (
            SELECT k.number, k.born, k.version, k.due, k.fence FROM {schema}.jobs k
            WHERE k.shard = own.shard AND NOT k.dead AND k.due < before AND k.fence <> me
            ORDER BY k.due, k.number LIMIT own.share) j
        UNION ALL
        SELECT s.shard, s.kind, NULL, k.number, k.born, k.version, k.due, k.fence
        FROM {schema}.shards s JOIN {schema}.jobs k ON k.shard = s.shard AND k.fence = me
        WHERE s.fence = me AND s.kind = ANY (named) AND k.fence <> 0 AND k.due < before
    ), cut AS MATERIALIZED (
        SELECT min(f.due) AS due FROM (
            SELECT max(f.due) AS due FROM found f WHERE f.share IS NOT NULL GROUP BY f.shard HAVING count(*) >= min(f.share)
            UNION ALL
            (SELECT f.due FROM found f ORDER BY f.due, f.number OFFSET total - 1 LIMIT 1)) f
    )
    SELECT f.number, f.born, f.version, f.due, f.fence, f.kind, cut.due FROM found f, cut
        WHERE cut.due IS NULL OR f.due <= cut.due ORDER BY f.due, f.number LIMIT total
$function$;

-- The kinds whose jobs no node handles, and when the first of them is due.
CREATE FUNCTION {schema}.unhandled() RETURNS TABLE (kind text, due bigint)
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    SELECT f.kind, min(f.due) FROM {schema}.first_jobs() f
        WHERE NOT EXISTS (SELECT 1 FROM {schema}.leases l
            WHERE f.kind = ANY (l.kinds) AND l.ends > clock_timestamp())
        GROUP BY f.kind ORDER BY f.kind
$function$;

-- Up to `total` jobs of one list, of one kind or of all, that stand behind a due time and a number.
CREATE FUNCTION {schema}.list(dead_ones boolean, named text, due bigint, number bigint, total bigint)
RETURNS SETOF {schema}.jobs LANGUAGE sql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $function$
    SELECT j.* FROM {schema}.first_jobs() s, LATERAL (SELECT * FROM {schema}.jobs k
            WHERE k.shard = s.shard AND NOT k.dead AND (k.due, k.number) > ($3, $4)
            ORDER BY k.due, k.number LIMIT total) j
        WHERE NOT dead_ones AND (named IS NULL OR s.kind = named)
    UNION ALL
    SELECT j.* FROM {schema}.dead_kinds() s, LATERAL (SELECT * FROM {schema}.jobs k
            WHERE k.kind = s.kind AND k.dead AND (k.due, k.number) > ($3, $4)
            ORDER BY k.due, k.number LIMIT total) j
        WHERE dead_ones AND (named IS NULL OR s.kind = named)
    ORDER BY due, number LIMIT total
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
-- of the kind has the key, `if_taken` says what happens: refuse, keep, replace or update. A recurring job,
-- whose `recurrence` is as in the table, is first due at `due`; without a key, it has its kind as one, and
-- updates. Returns the two numbers of the id, and whether it is that of another job, which has refused this one.
-- A transaction that is not READ COMMITTED may keep a job that has ended since it began.
CREATE FUNCTION {schema}.enqueue(kind text, payload bytea, due timestamptz DEFAULT clock_timestamp(),
    key text DEFAULT NULL, if_taken text DEFAULT 'refuse', recurrence text DEFAULT NULL)
RETURNS TABLE (number bigint, born bigint, is_taken boolean) LANGUAGE plpgsql AS $function$
DECLARE
    unnamed boolean := key IS NULL AND recurrence IS NOT NULL;
    change json := json_build_object('op', 'insert', 'kind', kind, 'key', CASE WHEN unnamed THEN kind ELSE key END,
        'if_taken', CASE WHEN unnamed THEN 'update' ELSE if_taken END,
        'due', greatest(ceil(extract(epoch FROM due) * 1000000)::bigint, 0), 'recurrence', recurrence);
BEGIN
    IF if_taken IS NULL OR if_taken NOT IN ('refuse', 'keep', 'replace', 'update') OR octet_length(kind) > 256
        OR octet_length(key) > 1024 OR octet_length(payload) > 16777216
        OR recurrence !~ '^(cron .+|every [1-9][0-9]{0,17} from (0|[1-9][0-9]{0,17}))$'
    THEN
        RAISE invalid_parameter_value USING MESSAGE = 'if_taken is refuse, keep, replace or update; a kind has at most '
            '256 bytes, a key 1,024, a payload 16 MiB; a recurrence is ''cron EXPRESSION'' or ''every PERIOD from FIRST''';
    END IF;
    RETURN QUERY SELECT (a.job).number, (a.job).born, a.answer = 'taken'
        FROM {schema}.apply(0, json_build_array(change), ARRAY[payload]) a;
END
$function$;
