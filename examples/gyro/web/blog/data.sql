INSERT INTO blog_author (id, name, profile) VALUES (3, 'ada', ''), (4, 'ben', ''), (5, 'cyd', '');
