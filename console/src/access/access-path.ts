/** The address of the access page. With `from` and `to`, it explains whether one session may see another. */
export function accessPath(query: Readonly<Record<string, string | undefined>> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value);
  const text = params.toString();
  return text === "" ? "/access" : `/access?${text}`;
}
