/**
 * Plots as standalone SVGs. Both axes of curves are logarithmic, so a straight line at 45° is linear growth, and a flat
 * line is constant.
 */

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [size: number, ms: number])[];
}

const width = 640;
const height = 300;
const lineHeight = 15;
const box = { left: 70, right: 470, top: 34, bottom: 252 };
/** Colors that are legible on both white and black. */
const colours = ["#d9480f", "#1c7ed6", "#2f9e44", "#ae3ec9", "#868e96"];

export function plot(title: string, unit: string, series: readonly Series[]): string {
  const drawn = series.filter(({ points }) => points.length > 0);
  const all = drawn.flatMap(({ points }) => points);
  if (all.length === 0) return "";
  const x = scale(
    all.map(([size]) => size),
    box.left,
    box.right,
  );
  const y = scale(
    all.map(([, ms]) => ms),
    box.bottom,
    box.top,
  );
  const sizes = [...new Set(all.map(([size]) => size))].toSorted((a, b) => a - b);
  const parts = [
    `<title>${escaped(title)}</title>`,
    text(box.left, 18, title, "start", 'font-weight="bold"'),
    ...y.ticks.flatMap((tick) => [
      line(box.left, y.at(tick), box.right, y.at(tick), "#8884"),
      text(box.left - 8, y.at(tick) + 4, milliseconds(tick), "end"),
    ]),
    ...sizes.map((size) => text(x.at(size), box.bottom + 18, short(size), "middle")),
    text((box.left + box.right) / 2, box.bottom + 38, unit, "middle"),
    ...drawn.flatMap((each, index) => curve(each, colourOf(index), x.at, y.at)),
    ...names(drawn, y.at),
  ];
  return drawing(parts);
}

type Scale = (value: number) => number;

/** Whole powers of ten around the values. */
function scale(values: readonly number[], from: number, to: number): { at: Scale; ticks: number[] } {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  const at = (value: number) => round(from + ((Math.log10(value) - low) / (high - low)) * (to - from));
  return { at, ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)) };
}

function curve({ points }: Series, colour: string, x: Scale, y: Scale): string[] {
  const places = points.map(([size, ms]) => [x(size), y(ms)] as const);
  return [
    `<polyline points="${places.map((place) => place.join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`),
  ];
}

/** One horizontal bar per series, whose only point has the value, on a logarithmic scale. */
export function plotBars(title: string, unit: string, series: readonly Series[]): string {
  const bars = series.flatMap(({ name, points: [point] }) =>
    point === undefined ? [] : [{ name, value: point[1] }],
  );
  if (bars.length === 0) return "";
  const [left, right] = [170, 560];
  const x = scale(
    bars.map(({ value }) => value),
    left,
    right,
  );
  const step = (box.bottom - box.top) / bars.length;
  const parts = [
    `<title>${escaped(title)}</title>`,
    text(20, 18, title, "start", 'font-weight="bold"'),
    ...x.ticks.flatMap((tick) => [
      line(x.at(tick), box.top, x.at(tick), box.bottom, "#8884"),
      text(x.at(tick), box.bottom + 18, short(tick), "middle"),
    ]),
    text((left + right) / 2, box.bottom + 38, unit, "middle"),
    ...bars
      .toSorted((a, b) => b.value - a.value)
      .flatMap(({ name, value }, index) => {
        const [top, fill] = [
          round(box.top + index * step + 3),
          name.startsWith("skein") ? colourOf(0) : colourOf(4),
        ];
        const width = Math.max(2, round(x.at(value) - left));
        return [
          text(left - 8, top + step / 2, name, "end"),
          `<rect x="${left}" y="${top}" width="${width}" height="${round(step - 6)}" fill="${fill}"/>`,
          text(left + width + 6, top + step / 2, Math.round(value).toLocaleString("en-US"), "start"),
        ];
      }),
  ];
  return drawing(parts);
}

function drawing(parts: readonly string[]): string {
  const style = 'font-family="system-ui, sans-serif" font-size="12" fill="#888"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${style} role="img">\n${parts.join("\n")}\n</svg>\n`;
}

/** Labels at the ends of their curves, without overlaps. */
function names(drawn: readonly Series[], y: Scale): string[] {
  const wanted = drawn
    .map(({ name, points }, index) => ({ name, colour: colourOf(index), at: y(points.at(-1)?.[1] ?? 1) + 4 }))
    .toSorted((a, b) => a.at - b.at);
  let above = Number.NEGATIVE_INFINITY;
  return wanted.map(({ name, colour, at }) => {
    above = Math.max(at, above + lineHeight);
    return text(box.right + 10, above, name, "start", `fill="${colour}"`);
  });
}

function colourOf(index: number): string {
  return colours[index % colours.length] ?? "#888";
}

function line(x1: number, y1: number, x2: number, y2: number, colour: string): string {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${colour}"/>`;
}

function text(x: number, y: number, content: string, anchor: string, more = ""): string {
  return `<text x="${x}" y="${round(y)}" text-anchor="${anchor}"${more === "" ? "" : ` ${more}`}>${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function milliseconds(value: number): string {
  if (value >= 1000) return `${short(value / 1000)} s`;
  return value >= 1 ? `${value} ms` : `${Number((value * 1000).toPrecision(1))} µs`;
}

function short(value: number): string {
  return value >= 1000 ? `${value / 1000}k` : String(value);
}
