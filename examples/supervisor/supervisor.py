"""The classic script of Distributed TensorFlow: between-graph replication with parameter servers.

    python3 supervisor.py ps 0 FOLDER & python3 supervisor.py worker 0 FOLDER & python3 supervisor.py worker 1 FOLDER

FOLDER has MNIST's idx files as .gz. README.md says what becomes of each part in disttrain.
"""
import gzip
import sys

import numpy as np
import tensorflow.compat.v1 as tf

JOB, INDEX, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
BATCH, STEPS, WORKERS = 100, 3000, 2

# 1. The cluster.
cluster = tf.train.ClusterSpec({"ps": ["127.0.0.1:7110"], "worker": ["127.0.0.1:7120", "127.0.0.1:7121"]})
server = tf.train.Server(cluster, job_name=JOB, task_index=INDEX)
if JOB == "ps":
    server.join()  # for ever


# 2. The data: each worker draws from all records.
def read(name, header):
    with gzip.open(f"{FOLDER}/{name}.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def batches(seed):
    images, labels = read("train-images-idx3-ubyte", 16).reshape(-1, 784), read("train-labels-idx1-ubyte", 8)
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(len(labels))
        for begin in range(0, len(order), BATCH):
            chosen = order[begin:begin + BATCH]
            yield {x: images[chosen] / 255, y: labels[chosen]}


tf.disable_eager_execution()
is_chief = INDEX == 0
# 3. Where each variable is.
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{INDEX}")):
    global_step = tf.train.get_or_create_global_step()
    # 4. The model.
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
    w1, b1 = tf.Variable(tf.glorot_uniform_initializer()([784, 100])), tf.Variable(tf.zeros([100]))
    w2, b2 = tf.Variable(tf.glorot_uniform_initializer()([100, 10])), tf.Variable(tf.zeros([10]))
    logits = tf.nn.relu(x @ w1 + b1) @ w2 + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y), tf.float32))
    # 5. The update, with the mean of the workers' gradients.
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.001), replicas_to_aggregate=WORKERS,
                                               total_num_replicas=WORKERS)
    train = optimizer.minimize(loss, global_step=global_step)
    tokens, queue_runner = optimizer.get_init_tokens_op(), optimizer.get_chief_queue_runner()

# 6. Initial values, checkpoints and recovery.
supervisor = tf.train.Supervisor(
    is_chief=is_chief, logdir="/tmp/supervisor", global_step=global_step, save_model_secs=60,
    local_init_op=optimizer.chief_init_op if is_chief else optimizer.local_step_init_op,
    ready_for_local_init_op=optimizer.ready_for_local_init_op)
session = supervisor.prepare_or_wait_for_session(server.target)
if is_chief:
    supervisor.start_queue_runners(session, [queue_runner])
    session.run(tokens)

# 7. The loop.
for feed in batches(INDEX):
    _, value, step = session.run([train, loss, global_step], feed)
    if supervisor.should_stop() or step >= STEPS:
        break
    if step % 100 == 0:
        print(f"step {step}: loss {value:.4f}", flush=True)

# 8. The evaluation.
if is_chief:
    test = {x: read("t10k-images-idx3-ubyte", 16).reshape(-1, 784) / 255, y: read("t10k-labels-idx1-ubyte", 8)}
    print(f"test accuracy {session.run(accuracy, test):.4f}", flush=True)
