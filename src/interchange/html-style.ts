/** The style sheet for an exported session. A test checks that every text color has a contrast of 4.5 on its background. */

export const light = {
  page: "#fbfaf8",
  card: "#ffffff",
  code: "#f3f1ec",
  line: "#ddd8ce",
  text: "#23211d",
  soft: "#625d52",
  user: "#eef3f1",
  accent: "#1d6a57",
  bad: "#a3281f",
};

export const dark: typeof light = {
  page: "#161817",
  card: "#1e2120",
  code: "#252928",
  line: "#3a403e",
  text: "#e9e7e2",
  soft: "#a9aea9",
  user: "#20302b",
  accent: "#7fd1b9",
  bad: "#ff9d92",
};

function variables(palette: typeof light): string {
  return Object.entries(palette)
    .map(([name, color]) => `--${name}: ${color};`)
    .join(" ");
}

export const style = `
:root { color-scheme: light dark; ${variables(light)} }
@media (prefers-color-scheme: dark) { :root { ${variables(dark)} } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.6 ui-sans-serif, system-ui, sans-serif; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: .5rem 1rem; }
header, nav, main, footer { max-width: 48rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3.5rem; padding-bottom: 1.5rem; }
h1 { font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 1rem; text-wrap: balance; }
h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
h3 { font-size: .9rem; font-weight: 650; margin: 0; display: inline; }
a { color: var(--accent); text-underline-offset: .2em; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; font-size: .9rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
nav { font-size: .9rem; }
nav ol { margin: .4rem 0 1rem; padding-left: 1.5rem; }
nav h2 { font-size: .9rem; margin: 1rem 0 0; padding: 0; border: 0; }
article { margin: 0 0 1.25rem; padding: .9rem 1.1rem; border: 1px solid var(--line); border-radius: .7rem; background: var(--card); }
article.user { background: var(--user); border-color: transparent; }
article.summary { border-style: dashed; }
article.tool, article.other { background: none; }
.about { color: var(--soft); font-size: .85rem; margin-left: .5rem; }
.about > * + *::before { content: "· "; }
.label { color: var(--accent); }
.bad { color: var(--bad); }
article > :first-child { margin-bottom: .35rem; }
p { margin: .5rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
p.heading { font-weight: 650; margin-top: 1rem; }
p.note, p.mark { color: var(--soft); font-size: .9rem; }
p.mark { text-align: center; margin: 0 0 1.25rem; }
pre, code { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; font-size: .85rem; }
pre { margin: .5rem 0; padding: .75rem .9rem; border-radius: .5rem; background: var(--code); white-space: pre-wrap; overflow-wrap: anywhere; }
p code { background: var(--code); padding: .1em .3em; border-radius: .3em; }
img { display: block; max-width: 100%; height: auto; margin: .5rem 0; border-radius: .5rem; }
details { margin: .5rem 0; border-left: 2px solid var(--line); padding-left: .9rem; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
summary b { color: var(--text); font-weight: 600; }
footer { color: var(--soft); font-size: .85rem; padding-top: 2rem; padding-bottom: 3rem; }
@media print {
  :root { ${variables({ ...light, page: "#ffffff", user: "#ffffff", code: "#ffffff" })} }
  body { font-size: 10.5pt; }
  nav, .skip { display: none; }
  header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  article { border: 0; border-left: 2px solid var(--line); border-radius: 0; padding: 0 0 0 .8rem; }
  pre { border: 1px solid var(--line); }
  h2, h3, summary { break-after: avoid; }
  img, pre { break-inside: avoid; }
}
@page { margin: 18mm; }
`;
