"""Makes the navigation from the table of docs/README.md, and points links that leave docs/ to the repository."""
import html
import logging
import pathlib
import re

log = logging.getLogger("mkdocs.hooks")


def on_config(config, **_):
    config["mdx_configs"]["toc"] = {"slugify": slug}
    section, pages = [], set()
    nav = [{"Documents": "README.md"}]
    for line in pathlib.Path(config["docs_dir"], "README.md").read_text().splitlines():
        if heading := re.match(r"\| \*\*(.+?)\*\* \|", line):
            section = []
            nav.append({heading[1]: section})
        for page in re.findall(r"\]\(([^)#/]+\.md)", line):
            if section is not None and page not in pages:
                pages.add(page)
                section.append(page)
    config["nav"] = nav
    return config


def slug(heading, separator):
    """Returns the anchor of a heading as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", html.unescape(heading).lower()).replace(" ", separator)


def on_page_markdown(markdown, config, **_):
    return markdown.replace("](../", "](" + config["repo_url"] + "/blob/main/")


def on_post_build(config, **_):
    """Warns of links to anchors that no heading has."""
    site = pathlib.Path(config["site_dir"])
    anchors = {page: set(re.findall(r' id="([^"]+)"', page.read_text())) for page in site.rglob("index.html")}
    for page in anchors:
        for path, anchor in re.findall(r'href="([^":#]*)#([^"]+)"', page.read_text()):
            to = (page.parent / path / "index.html").resolve() if path else page
            if anchor not in anchors.get(to, ()):
                log.warning("%s links to %s#%s, which does not exist", page.relative_to(site), path, anchor)
