-- Version 4: a context tells the options it was made by, settings resolved. Bundles of before have none.

DROP VIEW task_contexts;
CREATE VIEW task_contexts AS
SELECT k.task_id * 1000000 + k.number AS id, k.task_id, CAST(b.bytes AS TEXT) AS payload,
       CASE WHEN json_valid(CAST(b.bytes AS TEXT))
            THEN json_extract(CAST(b.bytes AS TEXT), '$.options') END AS options,
       k.bundle_sha256 AS content_hash, k.opened_ms AS created_at
FROM takes k JOIN blobs b ON b.sha256 = k.bundle_sha256;
