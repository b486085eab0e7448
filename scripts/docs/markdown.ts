/** A link or an image in a Markdown file. */
export interface MarkdownLink {
  readonly target: string;
  readonly isImage: boolean;
  readonly line: number;
}

/** Returns the ID that GitHub gives a heading, without the number that it adds to a repeated one. */
export function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** Returns the text of a heading or a table cell without its markup. */
export function plainText(markdown: string): string {
  return markdown.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "");
}

/** Applies a change to every line outside code blocks. */
export function mapProse(markdown: string, change: (line: string, index: number) => string): string {
  let fence = "";
  return markdown
    .split("\n")
    .map((line, index) => {
      const [, marks = ""] = /^\s*(`{3,})/.exec(line) ?? [];
      if (marks === "") return fence === "" ? change(line, index) : line;
      if (fence === "") fence = marks;
      else if (marks.length >= fence.length) fence = "";
      return line;
    })
    .join("\n");
}

/** Joins inline code that is broken over two lines by moving its end to the first line. */
export function joinInlineCode(markdown: string): string {
  let isOpen = false;
  const marked = mapProse(markdown, (line) => {
    if (line === "") isOpen = false;
    if (line.split("`").length % 2 === 0) isOpen = !isOpen;
    return isOpen ? `${line}\0` : line;
  });
  return marked.replaceAll(/\0\n *([^`\n]*`\S*) ?/g, " $1\n").replaceAll("\0", "");
}

/** The headings of a page, with the IDs that links use. */
export function headingsOf(markdown: string): { level: number; text: string; id: string }[] {
  const found: { level: number; text: string; id: string }[] = [];
  const counts = new Map<string, number>();
  mapProse(markdown, (line) => {
    const [, marks, title = ""] = /^(#{1,6}) (.+?)\s*$/.exec(line) ?? [];
    if (marks === undefined) return line;
    const text = plainText(title);
    const slug = slugOf(text);
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    found.push({ level: marks.length, text, id: count === 0 ? slug : `${slug}-${count}` });
    return line;
  });
  return found;
}

const linkPattern = /(!?)\[((?:[^\]\\]|\\.)*)\]\(([^()\s]+)\)/g;

/** Replaces links and images outside code. `change` returns the new Markdown, or `null` to leave a link unchanged. */
export function mapLinks(
  markdown: string,
  change: (link: MarkdownLink & { readonly text: string }) => string | null,
): string {
  return mapProse(markdown, (line, index) =>
    line
      // Inline code in the text of a link belongs to the link.
      .split(/((?<!\[)`[^`]*`(?!\]))/)
      .map((part) =>
        part.startsWith("`")
          ? part
          : part.replaceAll(linkPattern, (whole, mark: string, text: string, target: string) => {
              const link = { text, target, isImage: mark === "!", line: index + 1 };
              return change(link) ?? whole;
            }),
      )
      .join(""),
  );
}

export function linksOf(markdown: string): MarkdownLink[] {
  const found: MarkdownLink[] = [];
  mapLinks(markdown, (link) => {
    found.push(link);
    return null;
  });
  return found;
}
