-- The user and the database of one server, in its MariaDB (10.11 or later). An administrator runs this script once per server:
--
--   sed 's/gyro_user/gyro/g; s/gyro_database/shop/g' role-mariadb.sql | mariadb
--
-- The user has all privileges on its database, and on one for trials. It has no SUPER, and no right to read other databases.
-- It needs them to create tables and triggers, and to lock rows. It connects from this machine only.
-- Set a password with ALTER USER … IDENTIFIED BY …, or use certificates (REQUIRE SUBJECT …).
CREATE DATABASE `gyro_database` CHARACTER SET utf8mb4;
CREATE USER `gyro_user`@localhost;
GRANT ALL PRIVILEGES ON `gyro_database`.* TO `gyro_user`@localhost;
-- In this database, a server tries the migrations of `plait gyro change`. It exists only during a trial.
GRANT ALL PRIVILEGES ON `gyro_database\_gyro\_trial`.* TO `gyro_user`@localhost;
