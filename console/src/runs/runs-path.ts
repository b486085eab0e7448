export type WorkTab = "runs" | "approvals" | "outbox";

/** The address of a part of the page about work. */
export function workPath(tab: WorkTab, more: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams();
  if (tab !== "runs") query.set("tab", tab);
  for (const [name, value] of Object.entries(more)) if (value !== undefined) query.set(name, value);
  const text = query.toString();
  return text === "" ? "/work" : `/work?${text}`;
}
