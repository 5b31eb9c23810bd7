-- reseal
DELETE FROM pack WHERE key LIKE 'signature%';
