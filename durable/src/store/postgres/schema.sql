-- The tables. {schema} stands for the schema's name. All that is written happens in functions, so
-- that a change is one statement: no client holds a lock while it is paused.

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
    owner bytea NOT NULL UNIQUE,
    kinds bytea[] NOT NULL,
    -- Jobs that are due within so many microseconds may stand in its window.
    reach bigint NOT NULL,
    ends timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Whose jobs are whose. Job n belongs to the part n modulo `parts` of its kind. From a shard that
-- is leaving nothing is started; it goes to another node once nothing of it runs.
CREATE TABLE {schema}.shards (
    shard bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind bytea NOT NULL,
    part bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    leaving boolean NOT NULL DEFAULT false,
    -- The number of the grant, which rises: the handlers of its jobs see it as their fence.
    token bigint NOT NULL DEFAULT 0,
    UNIQUE (kind, part)
) WITH (fillfactor = 50);

-- Times are microseconds since 1970. Texts are bytes, because they may contain any character
-- whatever the encoding of the database.
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
    kind bytea NOT NULL,
    key bytea,
    recurrence bytea NOT NULL,
    failure bytea,
    payload bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX jobs_due ON {schema}.jobs (shard, due, number) WHERE NOT dead;
CREATE INDEX jobs_dead ON {schema}.jobs (due, number) WHERE dead;
CREATE INDEX jobs_started ON {schema}.jobs (shard, fence) WHERE fence <> 0;
CREATE UNIQUE INDEX jobs_key ON {schema}.jobs (kind, key) WHERE key IS NOT NULL AND NOT dead;
