-- database
PRAGMA user_version = 2; DROP TABLE uses; DROP TABLE routes; DROP TABLE route_evidence;
