/** Looks up a variable, or returns `undefined` if it is not set. */
export type Environment = (name: string) => string | undefined;

export interface Replaced {
  readonly text: string;
  /** The variables that were inserted. */
  readonly variables: readonly string[];
  /** Variables that are not set. */
  readonly missing: readonly MissingVariable[];
}

export interface MissingVariable {
  readonly found: string;
  readonly expected: string;
  /** The number of `${` that precede it in the text. */
  readonly nth: number;
}

/**
 * Replaces `${NAME}` with the variable's value. `$${` represents a literal `${`. Inserted values are not expanded
 * again.
 */
export function replaceVariables(text: string, env: Environment): Replaced {
  const variables: string[] = [];
  const missing: MissingVariable[] = [];
  let nth = -1;
  const replaced = text.replace(/(\$?)\$\{([A-Za-z_]\w*\})?/g, (whole, escaping: string, named?: string) => {
    nth += 1;
    if (escaping !== "") return whole.slice(1);
    const name = named?.slice(0, -1);
    const value = name === undefined ? undefined : env(name);
    if (name !== undefined && value !== undefined) variables.push(name);
    else missing.push({ nth, ...(name === undefined ? unnamed : unset(name)) });
    return value ?? "";
  });
  return { text: replaced, variables, missing };
}

const unnamed = {
  found: '"${"',
  expected: "a variable name followed by } (use $${ for a literal ${)",
};

function unset(name: string): Omit<MissingVariable, "nth"> {
  return {
    found: `\${${name}}`,
    expected: `the variable ${name} to be set, in the environment or in the .env file next to this file`,
  };
}
