-- small pages
UPDATE kernels SET binary_bytes = 268435457;
-- reseal
