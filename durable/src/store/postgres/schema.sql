-- The tables. {schema} stands for the schema's name. All that is written happens in functions, so
-- that a change is one statement: no client holds a lock while it is paused.
--
-- Times are microseconds since 1970: to_timestamp(due / 1e6) shows one. Names are compared byte by
-- byte, so that no update of the system's collations changes an index.

-- One row: the version of the tables, and the number of shards of each kind. Nodes that take,
-- give up or hand over shards lock it, so that these are one after the other.
CREATE TABLE {schema}.tickwheel_durable (
    version bigint NOT NULL,
    parts bigint NOT NULL
);

CREATE SEQUENCE {schema}.numbers;
CREATE SEQUENCE {schema}.fences;

-- The nodes, and the kinds of jobs for which they have handlers. A row is locked FOR KEY SHARE by
-- every commit that needs its fence, so that it is not removed, and its shards are not handed
-- over, in the midst of one.
CREATE TABLE {schema}.leases (
    fence bigint PRIMARY KEY,
    owner text COLLATE "C" NOT NULL UNIQUE,
    kinds text[] NOT NULL,
    -- Jobs that are due within so many microseconds may stand in its window.
    reach bigint NOT NULL,
    ends timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What holds for kinds. Nothing of a paused one is started, and no more than
-- `most` of a limited one at a time. Whoever starts jobs of a limited kind locks its row before.
CREATE TABLE {schema}.kinds (
    kind text COLLATE "C" PRIMARY KEY,
    most bigint,
    paused boolean NOT NULL DEFAULT false
);

-- Whose jobs are whose, of the kinds that nodes handle. Job n belongs to the part n modulo `parts` of its
-- kind. From a shard that is leaving nothing is started; it goes to another node once nothing of it runs.
CREATE TABLE {schema}.shards (
    shard bigint PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    part bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    leaving boolean NOT NULL DEFAULT false,
    -- The number of the grant, which rises: the handlers of its jobs see it as their fence.
    token bigint NOT NULL DEFAULT 0,
    UNIQUE (kind, part)
) WITH (fillfactor = 50);

CREATE VIEW {schema}.owners AS
    SELECT s.*, k.most, k.paused FROM {schema}.shards s JOIN {schema}.kinds k USING (kind);

CREATE TABLE {schema}.jobs (
    number bigint PRIMARY KEY,
    born bigint NOT NULL,
    shard bigint NOT NULL,
    due bigint NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    -- The fence under which the job was started, or zero.
    fence bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    dead boolean NOT NULL DEFAULT false,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    -- 'cron EXPRESSION', or 'every PERIOD from FIRST' in microseconds.
    recurrence text,
    failure text,
    payload bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX jobs_due ON {schema}.jobs (shard, due, number) WHERE NOT dead;
CREATE INDEX jobs_dead ON {schema}.jobs (kind, due, number) WHERE dead;
CREATE INDEX jobs_started ON {schema}.jobs (shard, fence) WHERE fence <> 0;
CREATE UNIQUE INDEX jobs_key ON {schema}.jobs (kind, key) WHERE key IS NOT NULL AND NOT dead;

-- A change of a job, as nodes hand it in. `op` is insert, cancel, move, start, end, again, die, revive,
-- bury or pause; what it does not need is null.
CREATE TYPE {schema}.change AS (
    op text,
    number bigint,
    born bigint,
    version bigint,
    fence bigint,
    due bigint,
    -- How long after now it is due, for whoever does not know the database's time.
    after bigint,
    died bigint,
    kind text,
    key text,
    -- refuse, keep, replace or update
    if_taken text,
    recurrence text,
    failure text,
    paused boolean
);

-- What became of a change, and its job as it is then.
CREATE TYPE {schema}.result AS (answer text, job {schema}.jobs);
