docker run --runtime nvidia --gpus all --ipc=host -p 8000:8000 \
    -v ~/.cache/huggingface:/root/.cache/huggingface \
    vllm/vllm-openai:v0.9.1 --model mistralai/Mistral-7B-v0.1
