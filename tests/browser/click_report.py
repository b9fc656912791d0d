#!/usr/bin/python3
"""Opens a page of a report in headless Chromium and clicks through it: click_report.py PAGE [FOLDER FOR PICTURES]

At 1280 and 390 pixels, light and dark: every chart is drawn, nothing is wider than the screen, the console has no error,
nothing but the page itself is asked for. Exit status 77: no browser here."""
import json
import os
import shutil
import sys
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    print("no selenium here (scripts/setup browser)")
    sys.exit(77)

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
if not DRIVER or not BROWSER:
    print("no chromium or chromedriver here (scripts/setup browser)")
    sys.exit(77)

OVERFLOWING = """
const wide = document.documentElement.clientWidth + 1, found = [];
if (document.documentElement.scrollWidth > wide) found.push('page ' + document.documentElement.scrollWidth);
for (const e of document.querySelectorAll('body *')) {
  if (e.closest('.scroll') || e.closest('[hidden]') || e.closest('details:not([open])') || e.closest('script')) continue;
  const box = e.getBoundingClientRect();
  if (box.width > 0 && box.right > wide) found.push(e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + Math.round(box.right) + ' ' + e.textContent.slice(0, 30));
}
return found;
"""
CUT = """
const found = [];
for (const chart of document.querySelectorAll('.chart, .drawing')) {
  if (chart.closest('[hidden]')) continue;
  const frame = chart.getBoundingClientRect();
  for (const text of chart.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    if (box.width === 0) continue;
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      found.push((chart.dataset.chart ?? 'drawing') + ': ' + text.textContent);
  }
}
return found;
"""
OVERLAPPING = """
const found = [];
for (const chart of document.querySelectorAll('.chart, .drawing')) {
  if (chart.closest('[hidden]')) continue;
  const boxes = [...chart.querySelectorAll('text')].filter((t) => t.textContent.trim() && getComputedStyle(t).opacity !== '0')
    .map((t) => [t.getBoundingClientRect(), t.textContent]).filter(([b]) => b.width > 0);
  for (let i = 0; i < boxes.length; ++i) for (let k = i + 1; k < boxes.length; ++k) {
    const [a, an] = boxes[i], [b, bn] = boxes[k];
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 2 && y > 4) found.push((chart.dataset.chart ?? 'drawing') + ': ' + an + ' / ' + bn);
  }
}
return found;
"""

# Text of the page itself, tables among it: what is drawn on other text, outside of its cell, or beyond a box that
# does not scroll. A table that is wider than the screen must be in a box that scrolls, by keyboard too, and shows it.
WORDS = """
const found = [], boxes = [];
const clip = (node) => {
  let area = {left: 0, right: document.documentElement.clientWidth, scrolls: false};
  for (let e = node.parentElement; e; e = e.parentElement) {
    const style = getComputedStyle(e);
    if (style.overflowX === 'visible') continue;
    const box = e.getBoundingClientRect();
    area = {left: Math.max(area.left, box.left), right: Math.min(area.right, box.right),
            scrolls: area.scrolls || style.overflowX === 'auto' || style.overflowX === 'scroll'};
  }
  return area;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const parent = node.parentElement;
  if (!node.textContent.trim() || parent.closest('script, style, svg, [hidden]') || !parent.checkVisibility()) continue;
  if (parent.closest('details:not([open])') && !parent.closest('summary')) continue;
  const area = clip(node), cell = parent.closest('td, th'), range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (box.width === 0) continue;
    const says = node.textContent.trim().slice(0, 40);
    if (!area.scrolls && (box.right > area.right + 1 || box.left < area.left - 1)) found.push('cut: ' + says);
    if (cell) {
      const frame = cell.getBoundingClientRect();
      if (box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 2) found.push('out of its cell: ' + says);
    }
    const left = Math.max(box.left, area.left), right = Math.min(box.right, area.right);
    if (right - left > 2) boxes.push({left, right, top: box.top, bottom: box.bottom, node, says});
  }
}
boxes.sort((a, b) => a.top - b.top);
for (let i = 0; i < boxes.length; ++i) {
  for (let k = i + 1; k < boxes.length && boxes[k].top < boxes[i].bottom - 4; ++k) {
    const a = boxes[i], b = boxes[k];
    if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2) found.push('on one another: ' + a.says + ' / ' + b.says);
  }
}
for (const table of document.querySelectorAll('table')) {
  if (!table.checkVisibility() || table.scrollWidth === 0) continue;
  const box = table.parentElement, style = getComputedStyle(box);
  if (table.scrollWidth <= box.clientWidth + 1) continue;
  if (style.overflowX !== 'auto') found.push('a wide table that does not scroll: ' + table.textContent.slice(0, 40));
  if (box.tabIndex !== 0) found.push('a wide table that no key reaches: ' + table.textContent.slice(0, 40));
  if (style.backgroundImage === 'none') found.push('a wide table that does not show it: ' + table.textContent.slice(0, 40));
}
return found;
"""
POINTS = """
const account = document.getElementById('account'), found = [];
if (!account) return found;
const data = JSON.parse(account.textContent);
for (const chart of document.querySelectorAll('.chart[data-chart=roofline]')) {
  if (chart.closest('[hidden]')) continue;
  const parts = data.depths[chart.dataset.index].parts.length;
  const points = chart.querySelectorAll('.mark-symbol path').length;
  if (points !== parts) found.push(points + ' points for ' + parts + ' parts');
}
return found;
"""
SHOWN = """
return [[...document.querySelectorAll('section')].map((s) => s.hidden), [...document.querySelectorAll('details')].map((d) => d.open)];
"""


def open_browser(width, dark):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    return driver


def check(driver, where, problems):
    time.sleep(0.4)
    empty = driver.execute_script(
        "return [...document.querySelectorAll('.chart')].filter((c) => !c.closest('[hidden]') && !c.querySelector('svg')).map((c) => c.dataset.chart)")
    problems += [f"{where}: chart {name} is not drawn" for name in empty]
    for what, script in (("wider than the screen", OVERFLOWING), ("cut", CUT), ("on one another", OVERLAPPING),
                         ("text", WORDS), ("roofline", POINTS)):
        problems += [f"{where}: {what}: {text}" for text in driver.execute_script(script)[:8]]


def picture(driver, width, name, folder):
    if not folder:
        return
    height = driver.execute_script("return document.documentElement.scrollHeight")
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    time.sleep(0.3)
    driver.save_screenshot(os.path.join(folder, name + ".png"))


def visit(page, width, dark, folder, problems):
    where = f"{width} px, {'dark' if dark else 'light'}"
    driver = open_browser(width, dark)
    try:
        driver.get("file://" + os.path.abspath(page))
        check(driver, where, problems)
        picture(driver, width, f"{width}-{'dark' if dark else 'light'}", folder)
        for index, button in enumerate(driver.find_elements(By.CSS_SELECTOR, "#depths button")):
            button.click()
            if button.get_attribute("aria-pressed") != "true":
                problems.append(f"{where}: button {index} does nothing")
            check(driver, f"{where}, depth {index}", problems)
        for summary in driver.find_elements(By.CSS_SELECTOR, "summary"):
            if summary.is_displayed():
                driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", summary)
                summary.click()
        if driver.execute_script("return [...document.querySelectorAll('details')].filter((d) => !d.closest('[hidden]') && !d.open).length"):
            problems.append(f"{where}: a table that does not unfold")
        check(driver, where + ", unfolded", problems)
        picture(driver, width, f"{width}-{'dark' if dark else 'light'}-unfolded", folder)
        shown = driver.execute_script(SHOWN)
        driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        check(driver, where + ", for print", problems)
        driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
        if driver.execute_script(SHOWN) != shown:
            problems.append(f"{where}: after printing it is not as before")
        check(driver, where + ", after print", problems)
        problems += [f"{where}: console: {entry['message']}" for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        for entry in driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith("data:") and url != "file://" + os.path.abspath(page):
                    problems.append(f"{where}: a request for {url}")
    finally:
        driver.quit()


def main():
    page, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    problems = []
    for width in (1280, 390):
        for dark in (False, True):
            visit(page, width, dark, folder, problems)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main()
