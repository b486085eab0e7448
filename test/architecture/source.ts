import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "oxc-parser";

/** The source tree as data for the architecture rules. */

export const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Import {
  /** For our own files, a path relative to the checkout. Otherwise, the package name. */
  readonly target: string;
  readonly kind: "value" | "type" | "dynamic";
}

export interface SourceFunction {
  readonly name: string;
  readonly lines: number;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  readonly imports: readonly Import[];
  readonly functions: readonly SourceFunction[];
  /** Constructs that are not allowed in the source: `any`, an empty catch, `console`. */
  readonly slips: readonly string[];
}

/** Returns every file in `src/` that ships. */
export function sourceFiles(): SourceFile[] {
  return globSync("src/**/*.ts", { cwd: root })
    .filter((path) => !path.endsWith(".test.ts"))
    .toSorted()
    .map((path) => readSource(path, readFileSync(join(root, path), "utf8")));
}

/** Returns every file of the console. */
export function consoleFiles(): SourceFile[] {
  return globSync("console/src/**/*.{ts,tsx}", { cwd: root })
    .toSorted()
    .map((path) => readSource(path, readFileSync(join(root, path), "utf8")));
}

export function readSource(path: string, text: string): SourceFile {
  const { program, module, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const functions: SourceFunction[] = [];
  const slips: string[] = [];
  const lineAt = (offset: number) => text.slice(0, offset).split("\n").length;
  const measure = (node: { start: number; end: number; id?: { name: string } | null }) => {
    const lines = lineAt(node.end) - lineAt(node.start) + 1;
    functions.push({ name: `${path}:${lineAt(node.start)} ${node.id?.name ?? ""}`.trim(), lines });
  };
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
    TSAnyKeyword: (node) => slips.push(`${path}:${lineAt(node.start)} any`),
    CatchClause: (node) => {
      if (node.body.body.length === 0) slips.push(`${path}:${lineAt(node.start)} empty catch`);
    },
    MemberExpression: (node) => {
      const onConsole = node.object.type === "Identifier" && node.object.name === "console";
      if (onConsole) slips.push(`${path}:${lineAt(node.start)} console`);
    },
  }).visit(program);
  const statics: Import[] = [...module.staticImports, ...module.staticExports].flatMap((each) => {
    const request =
      "moduleRequest" in each ? each.moduleRequest?.value : each.entries[0]?.moduleRequest?.value;
    if (request === undefined) return [];
    const isType = each.entries.length > 0 && each.entries.every((entry) => entry.isType);
    return [{ target: resolveFrom(path, request), kind: isType ? "type" : "value" }];
  });
  const dynamics: Import[] = module.dynamicImports.map((each) => {
    const request = text.slice(each.moduleRequest.start, each.moduleRequest.end);
    return { target: resolveFrom(path, request.replaceAll(/^["'`]|["'`]$/g, "")), kind: "dynamic" };
  });
  return {
    path,
    text,
    lines: text.split("\n").length - 1,
    imports: [...statics, ...dynamics],
    functions,
    slips,
  };
}

function resolveFrom(path: string, request: string): string {
  return request.startsWith(".") ? normalize(join(dirname(path), request)) : request;
}
