mod caches;
