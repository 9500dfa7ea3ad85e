INSERT INTO items (id, title, price, stock) VALUES (11, 'tea', 4, 100), (12, 'coffee', 7, 100), (13, 'cocoa', 5, 100);
