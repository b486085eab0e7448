/** Looks up a variable; `undefined`: not set. */
export type Environment = (name: string) => string | undefined;

export interface Replaced {
  readonly text: string;
  /** The variables that were put in. */
  readonly variables: readonly string[];
  /** Those that could not be. */
  readonly missing: readonly MissingVariable[];
}

export interface MissingVariable {
  readonly found: string;
  readonly expected: string;
  /** Where in the text its `${` stands: so many others are before it. */
  readonly nth: number;
}

/** Puts the environment's values in for `${NAME}`; `$${` stands for `${`. What is put in is not looked at again. */
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
  expected: "the name of a variable and } behind it ($${ stands for a plain ${)",
};

function unset(name: string): Omit<MissingVariable, "nth"> {
  return {
    found: `\${${name}}`,
    expected: `a variable ${name} in the environment or in the .env beside this file`,
  };
}
