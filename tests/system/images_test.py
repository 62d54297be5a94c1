"""Images in folders and in tar files of webdataset: each is decoded when its batch is made."""
import io
import random
import struct
import tarfile
import unittest
import zlib

from harness import SystemTest

SIDE = 16
JOB = """
[job]
name = "images"
[model]
builtin = "mlp"
layers = [256, 8, 2]
[data]
format = "{format}"
path = "data"
files = "{files}"
scale = 0.00392156862745098
{data}
[data.columns]
{columns}
[train]
batch_size = 20
epochs = 6
optimizer = {{ rule = "adam", learning_rate = 0.01 }}
[evaluate]
files = "{test}"
"""
FOLDERS = {"format": "images", "files": "train/*/*.png", "test": "test/*/*.png",
           "columns": 'image = { kind = "image", shape = [1, 16, 16], flip = true }\nclass = { kind = "label" }'}
SHARDS = {"format": "webdataset", "files": "train-*.tar", "test": "test.tar",
          "columns": 'image = { kind = "image", from = "png", shape = [1, 16, 16] }\ncls = { kind = "label" }'}


def png(pixels, width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(pixels[y * width:(y + 1) * width]) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pictures(count, seed):
    """Pictures whose upper or lower half is bright."""
    rng = random.Random(seed)
    for number in range(count):
        is_upper = rng.random() < 0.5
        half = [[rng.randrange(0, 120) for _ in range(SIDE * SIDE // 2)], [rng.randrange(90, 256) for _ in range(SIDE * SIDE // 2)]]
        yield f"{number:05}", png(half[is_upper] + half[not is_upper], SIDE, SIDE), "upper" if is_upper else "lower"


class ImagesTest(SystemTest):
    def job(self, kind, data=""):
        path = self.folder / "images.toml"
        path.write_text(JOB.format(**kind, data=data))
        return path

    def write_folders(self):
        for part, count, seed in (("train", 600, 1), ("test", 200, 2)):
            for name, content, label in pictures(count, seed):
                folder = self.folder / "data" / part / label
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}.png").write_bytes(content)

    def write_shards(self):
        (self.folder / "data").mkdir()
        everything = list(pictures(600, 1))
        parts = {f"train-{i}.tar": everything[i::3] for i in range(3)} | {"test.tar": list(pictures(200, 2))}
        for file, samples in parts.items():
            with tarfile.open(self.folder / "data" / file, "w") as tar:
                for name, content, label in samples:
                    for extension, data in (("png", content), ("cls", label.encode())):
                        member = tarfile.TarInfo(f"{name}.{extension}")
                        member.size = len(data)
                        tar.addfile(member, io.BytesIO(data))

    def assert_learned(self, outcome):
        result = self.assert_finished(outcome)
        self.assertEqual(result["evaluation"]["examples"], 200)
        self.assertGreater(result["evaluation"]["accuracy"], 0.95)

    def test_folders_of_images_train(self):
        self.write_folders()
        self.assert_learned(self.up(self.job(FOLDERS)))

    def test_tar_files_train_in_any_order_and_by_blocks(self):
        self.write_shards()
        self.assert_learned(self.up(self.job(SHARDS)))
        self.assert_learned(self.up(self.job(SHARDS, 'shuffle = "blocks"\nshuffle_window = 2')))

    def test_image_that_is_none_fails_the_job_with_its_name(self):
        self.write_folders()
        path = next((self.folder / "data" / "train" / "upper").iterdir())
        path.write_bytes(b"no image")
        outcome = self.up(self.job(FOLDERS), "--set", "job.max_restarts=0")
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertIn(path.name, outcome.err)
        self.assertIn("column 'image'", outcome.err)

    def test_numbers_beside_an_image_are_refused(self):
        self.write_folders()
        kind = FOLDERS | {"columns": FOLDERS["columns"] + '\nwidth = { kind = "numeric" }'}
        self.assert_refused(self.up(self.job(kind)), 78, "data.columns.width", "image")


if __name__ == "__main__":
    unittest.main()
