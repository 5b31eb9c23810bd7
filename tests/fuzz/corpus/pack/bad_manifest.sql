-- small pages
UPDATE kernels SET manifest = replace(manifest, 'threads 128', 'threads 0');
-- reseal kernels
-- reseal
-- sign
