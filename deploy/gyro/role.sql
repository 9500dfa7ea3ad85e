-- The role and the database of one server, in its PostgreSQL (15 or later). A superuser runs this script once per server:
--
--   psql -v role=gyro -v database=shop -f role.sql
--
-- The role is no superuser. It owns its database, and may change one setting: session_replication_role. With this
-- setting, updates of other servers are applied without triggers and foreign keys, because the updates contain their effects.
-- PostgreSQL also needs max_prepared_transactions = 10 (postgresql.conf; then a restart).
-- Set a password with \password, or use certificates or peer authentication (pg_hba.conf).
\set ON_ERROR_STOP on
CREATE ROLE :"role" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT SET ON PARAMETER session_replication_role TO :"role";
CREATE DATABASE :"database" OWNER :"role";
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
