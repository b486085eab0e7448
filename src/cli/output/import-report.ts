import { relative } from "node:path";
import type { ImportPayload } from "../../protocol/interchange.ts";
import { counted } from "./format.ts";
import { printTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, paint } from "./terminal.ts";

/** A command for the user to type next. */
type ToType = (...words: readonly string[]) => string;

const mostShown = 20;
const longest = 2000;

/** What an import came to, for people: sessions, what of them was not kept, and what could not be imported. */
export function printImport(
  terminal: Terminal,
  { imported, skipped = [], ignored = [], failed }: ImportPayload,
  { isDry, toType }: { readonly isDry: boolean; readonly toType: ToType },
): void {
  const line = (text: string) => terminal.out(`${oneLine(text, longest)}\n`);
  const title = (text: string) => terminal.out(`\n${paint(terminal, "bold", text)}\n`);
  const entries = imported.reduce((sum, each) => sum + each.entries, 0);
  const verb = isDry ? "would import" : "imported";
  line(`${verb} ${counted(imported.length, "session")} with ${counted(entries, "entry", "entries")}`);
  if (imported.length + skipped.length + ignored.length + failed.length === 0)
    line("no file with a session was found there");
  if (imported.length > 0) {
    const columns = [
      { title: "KEY", text: ({ key }: (typeof imported)[number]) => key, whole: true },
      {
        title: "ENTRIES",
        text: (row: (typeof imported)[number]) => String(row.entries),
        align: "right" as const,
      },
      { title: "FILE", text: ({ file }: (typeof imported)[number]) => shownPath(terminal, file), least: 20 },
    ];
    printTable(terminal, columns, imported.slice(0, mostShown));
    if (imported.length > mostShown) line(`and ${imported.length - mostShown} more; --json shows them all`);
  }
  const lost = sumUp(imported.flatMap(({ notKept }) => notKept));
  if (lost.length > 0) title("Not kept");
  for (const { what, count, example } of lost.slice(0, mostShown)) {
    terminal.out(
      `  ${oneLine(`${count} × ${what}${example === undefined ? "" : ` (${example})`}`, longest)}\n`,
    );
  }
  if (lost.length > mostShown) line(`  and ${lost.length - mostShown} more; --json shows them all`);
  if (skipped.length > 0) title("Skipped");
  for (const [why, rows] of Map.groupBy(skipped, (each) => each.why)) {
    terminal.out(`  ${counted(rows.length, "session")}: ${why}${remedyFor(toType, why, rows)}\n`);
  }
  if (ignored.length > 0) title("Ignored");
  for (const [why, rows] of Map.groupBy(ignored, (each) => each.why))
    terminal.out(`  ${counted(rows.length, "file")} ${why}\n`);
  if (failed.length > 0) title("Failed");
  for (const { file, error } of failed) terminal.out(`  ${oneLine(`${file}: ${error}`, longest)}\n`);
}

/** As seen from where the user stands, where that is shorter. */
function shownPath({ cwd }: Terminal, file: string): string {
  const path = relative(cwd, file);
  return path.startsWith("..") || path.length > file.length ? file : path;
}

interface Loss {
  readonly what: string;
  readonly count: number;
  readonly example?: string;
}

/** The same sentence of many sessions is one line. */
function sumUp(losses: readonly Loss[]): Loss[] {
  return [...Map.groupBy(losses, ({ what }) => what)].map(([what, each]) => {
    const example = each.find((one) => one.example !== undefined)?.example;
    const count = each.reduce((sum, one) => sum + one.count, 0);
    return { what, count, ...(example === undefined ? {} : { example }) };
  });
}

/** What to do about sessions that were skipped because they are in the trash. */
function remedyFor(toType: ToType, why: string, rows: readonly { readonly sessionId: string }[]): string {
  if (why !== "in the trash") return "";
  const restore = rows.slice(0, mostShown).map(({ sessionId }) => toType("sessions", "restore", sessionId));
  const rest = rows.length > mostShown ? [toType("sessions", "ls", "--trash")] : [];
  return `; restore with${[...restore, ...rest].map((command) => `\n    ${command}`).join("")}`;
}
