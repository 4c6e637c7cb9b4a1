FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
ENV SHM_SIZE=8g
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
ENTRYPOINT python train.py
CMD ["--epochs", "90"]
