"""Pictures next to each other, with captions."""

from PIL import Image, ImageDraw, ImageFont


def sheet_of(panels, width, height):
    """Draw four pictures of this size, at most, with a caption each."""
    title, gap = 24, 8
    sheet = Image.new("RGB", (2 * (width + gap) + gap, 2 * (height + title) + gap), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(14)
    for number, (caption, panel) in enumerate(panels.items()):
        left, top = gap + number % 2 * (width + gap), number // 2 * (height + title)
        draw.text((left, top + 4), caption, fill="black", font=font)
        sheet.paste(Image.fromarray(panel), (left, top + title))
    return sheet
