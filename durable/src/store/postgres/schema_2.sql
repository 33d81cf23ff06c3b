-- The second schema. Each grant of a shard to a node has a number, which rises: the handlers of
-- its jobs see it as their fence.

ALTER TABLE {schema}.shards ADD COLUMN token bigint NOT NULL DEFAULT 0;
UPDATE {schema}.shards SET token = nextval('{schema}.fences') WHERE fence <> 0;

-- The first schema left failed occurrences in the shard of their job. A node looks for a job in
-- the shard of its number.
UPDATE {schema}.jobs j SET shard = j.number % d.shards
    FROM {schema}.tickwheel_durable d WHERE j.shard <> j.number % d.shards;

-- It has a column more.
DROP FUNCTION {schema}.apply;
