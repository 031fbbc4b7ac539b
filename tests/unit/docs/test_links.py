"""Links lead somewhere, and lead from the README to every page."""

from pathlib import Path

from .pages import DOCS, PAGES, ROOT, anchors_of, links_of, name_of, problems


def _inside(page: Path) -> list[tuple[Path, str]]:
    """Links within the tree: where they lead, and to which heading there."""
    split = (link.partition("#") for link in links_of(page) if "://" not in link)
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in split]


def _dead(page: Path) -> list[str]:
    links = _inside(page)
    missing = [str(target) for target, _ in links if not target.exists()]
    headless = [f"{name_of(target)}#{anchor}" for target, anchor in links if anchor and anchor not in anchors_of(target)]
    return missing + headless


def test_links_lead_to_what_is_there() -> None:
    assert problems(_dead) == {}


def test_every_page_is_found_from_the_readme() -> None:
    found, open_pages = set[Path](), [ROOT / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in found:
            continue
        found.add(page)
        targets = [target for target, _ in _inside(page)]
        open_pages += [target for target in targets if target.suffix == ".md"]
        open_pages += [inside for target in targets if target.is_dir() for inside in target.glob("*.md")]
    assert sorted(name_of(page) for page in set(PAGES) - found) == []


def test_the_readme_lists_every_page_about_the_program() -> None:
    listed = {target for target, _ in _inside(ROOT / "README.md")}
    assert sorted(page.name for page in DOCS.glob("*.md") if page not in listed) == []
