#!/usr/bin/env python3
"""Writes small images beside itself with Pillow, and the pixels that Pillow reads from each: NAME.rgb, 37 x 29 x 3."""

import pathlib

from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT = 37, 29


def picture(mode):
    image = Image.new("RGBA", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            image.putpixel((x, y), (x * 255 // (WIDTH - 1), y * 255 // (HEIGHT - 1), (x + y) * 3 % 256, (x * y) % 256))
    return image.convert(mode)


def main():
    picture("RGB").save(FOLDER / "colour.jpg", quality=90)
    picture("RGB").save(FOLDER / "progressive.jpg", quality=90, progressive=True)
    picture("L").save(FOLDER / "gray.jpg", quality=90)
    picture("CMYK").save(FOLDER / "print.jpg", quality=90)
    picture("RGB").save(FOLDER / "colour.png")
    picture("L").save(FOLDER / "gray.png")
    picture("RGBA").save(FOLDER / "transparent.png")
    picture("LA").save(FOLDER / "transparent-gray.png")
    picture("RGB").quantize(16).save(FOLDER / "palette.png", transparency=3)
    for path in sorted(FOLDER.glob("*.[jp][pn]g")):
        if path.name != "print.jpg":
            path.with_name(path.name + ".rgb").write_bytes(Image.open(path).convert("RGB").tobytes())


if __name__ == "__main__":
    main()
