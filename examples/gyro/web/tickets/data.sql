INSERT INTO events (id, title, seats) VALUES (15, 'concert', 8), (16, 'play', 8), (17, 'film', 8);
