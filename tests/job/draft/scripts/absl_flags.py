from absl import app, flags
from torch.utils import data

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_workers", 8, "Workers.")
flags.DEFINE_integer("batch_size", 512, "Samples of one batch.")


def main(_):
    loader = data.DataLoader(range(10), batch_size=FLAGS.batch_size, num_workers=FLAGS.num_workers)
    for batch in loader:
        print(batch)


app.run(main)
