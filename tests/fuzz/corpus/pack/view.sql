-- small pages
CREATE VIEW more AS SELECT 1;
-- reseal
