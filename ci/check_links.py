"""Check the links between the pages of a built site: python ci/check_links.py build/docs/html

Every file and anchor that a page links to must exist. Files that a page loads must be part of the
site. Pages that asv writes are left out: they load scripts. Exits with 1 and names what is wrong.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.anchors, self.loaded = path, [], {""}, []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        target = given.get("href") or given.get("src")
        if target is None:
            return
        if not urlsplit(target).scheme and not target.startswith("//"):
            self.links.append(target)
        elif tag in ("script", "img", "iframe") or "stylesheet" in (given.get("rel") or ""):
            self.loaded.append(target)


def main(site):
    site = site.resolve()
    left_out = {site / "_static", site / "asv"}
    paths = [path for path in sorted(site.rglob("*.html")) if left_out.isdisjoint(path.parents)]
    pages = {path: Page(path) for path in paths}
    wrong = []
    for page in pages.values():
        wrong += [f"{page.path}: loads {target}" for target in page.loaded]
        for link in page.links:
            parts = urlsplit(link)
            target = page.path
            if parts.path:
                target = (page.path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                wrong.append(f"{page.path}: {link} is no file")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{page.path}: {link} is no anchor")
    count = sum(len(page.links) for page in pages.values())
    print("\n".join([*wrong, f"{len(pages)} pages, {count} links, {len(wrong)} wrong"]))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
