"""Line charts as SVG, drawn by hand: no library, and readable on light and dark pages."""

import math

COLOURS = ["#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2"]
# The marks of a logarithmic axis, which begins and ends at one of them: near the least and the greatest value.
STEPS = [float(f"{digit}e{power}") for power in range(-4, 8) for digit in (1, 2, 5)]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 340, 70, 40, 150, 46


def chart(path, title, x_title, y_title, series, x_ticks=None, log_y=False, marks=()):
    """Draws `series`, [(name, [(x, y), …])]; `x_ticks` are [(x, text)], `marks` [(from, to, text)] are shaded."""
    points = [point for _, line in series for point in line]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points) or 1
    ys = [y for _, y in points if y > 0 or not log_y] or [1]
    low, high = (min(ys), max(ys)) if log_y else (0, max(ys) * 1.05 or 1)
    if log_y:
        low, high = [y for y in STEPS if y <= low][-1], [y for y in STEPS if y > high][0]

    def at_x(x):
        return LEFT + (x - low_x) / ((high_x - low_x) or 1) * (WIDTH - LEFT - RIGHT)

    def at_y(y):
        part = math.log10(max(y, low) / low) / (math.log10(high / low) or 1) if log_y else y / high
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    if log_y:
        y_ticks = [(y, f"{y:g}") for y in STEPS if low <= y <= high]
    else:
        step = 10 ** math.floor(math.log10(high)) / 2
        y_ticks = [(n * step, f"{n * step:g}") for n in range(int(high / step) + 1)]
    if x_ticks is None:
        x_ticks = [(low_x + n * (high_x - low_x) / 6, f"{low_x + n * (high_x - low_x) / 6:.0f}") for n in range(7)]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', text(LEFT, 22, title, 'font-size="15" font-weight="bold"')]
    for start, end, name in marks:
        out.append(f'<rect x="{at_x(start):.1f}" y="{TOP}" width="{at_x(end) - at_x(start):.1f}" height="{HEIGHT - TOP - BOTTOM}" fill="#fee2e2"/>')
        out.append(text(at_x(start) + 4, TOP + 14, name, 'fill="#991b1b"'))
    for y, name in y_ticks:
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at_y(y):.1f}" y2="{at_y(y):.1f}" stroke="#e5e7eb"/>')
        out.append(text(LEFT - 6, at_y(y) + 4, name, 'text-anchor="end" fill="#374151"'))
    for x, name in x_ticks:
        out.append(text(at_x(x), HEIGHT - BOTTOM + 16, name, 'text-anchor="middle" fill="#374151"'))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title, 'text-anchor="middle" fill="#111827"'))
    out.append(text(14, TOP - 8, y_title, 'fill="#111827"'))
    for number, (name, line) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path_points = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{path_points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{TOP + 20 * number}" width="12" height="12" fill="{colour}"/>')
        out.append(text(WIDTH - RIGHT + 30, TOP + 10 + 20 * number, name, 'fill="#111827"'))
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n</svg>\n")


def text(x, y, words, more=""):
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escaped}</text>'


def percentiles(path, title, histograms):
    """Latency from the median on, the axis stretched towards the tail as HdrHistogram's plots are."""
    steps = [50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99]
    place = {p: math.log10(1 / (1 - p / 100)) for p in steps}
    series = [(name, [(place[p], max(h.percentile(p), 0.001)) for p in steps]) for name, h in histograms]
    ticks = [(place[p], f"{p:g}%") for p in (50, 90, 99, 99.9, 99.99)]
    chart(path, title, "percentile", "ms", series, ticks, log_y=True)
