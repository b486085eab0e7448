/** Reads the version in a model's name: `claude-opus-4-6` and `claude-3-7-sonnet-20250219` are 4.6 and 3.7. */
const named = /^claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?=-|$)/;

function isAtLeast(model: string, major: number, minor: number): boolean {
  const found = named.exec(model);
  if (found === null) return false;
  const [has, hasMinor] = [Number(found[1]), Number(found[2] ?? 0)];
  return has > major || (has === major && hasMinor >= minor);
}

/** "What's new in Claude 4.6" › Prefill removal. */
export function takesPrefill(model: string): boolean {
  return !isAtLeast(model, 4, 6);
}

/** "Troubleshooting thinking": from 4.7 on, a budget is refused. */
export function takesThinkingBudget(model: string): boolean {
  return !isAtLeast(model, 4, 7);
}
