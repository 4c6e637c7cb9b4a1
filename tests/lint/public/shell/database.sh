docker run -d --name pg -e POSTGRES_PASSWORD=x --shm-size=256m -p 5432:5432 postgres:16
docker run -d --name cache redis:7 redis-server --save 60 1
docker run --rm selenium/standalone-chrome:126.0 --help
