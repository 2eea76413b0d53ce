"""A language model on 127.0.0.1: llama.cpp's OpenAI-compatible server with the weights beside this file.

    serve.py PORT [THREADS]

Serves until its input ends, so that nothing is left behind by whoever started it, however that one ended.
"""

import os
import sys
from pathlib import Path

import xllamacpp

port = int(sys.argv[1])
# More than one spin while they wait for each other, which on a busy machine costs far more than it gains.
threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1

params = xllamacpp.CommonParams()
params.model.path = str(Path(__file__).parent / "model.gguf")
params.model_alias = {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], port
params.n_ctx, params.n_parallel = 8192, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
params.warmup, params.use_jinja = False, True
# It may not come to an end by itself: nobody gets a longer answer, whatever they ask for.
params.n_predict = 600
# The same question gets the same answer, and a short one: at higher temperatures it seldom comes to an end.
params.sampling.seed, params.sampling.temp = 7, 0.2

server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
while sys.stdin.buffer.read(4096):
    pass
# The server's threads do not end by themselves.
os._exit(0)
