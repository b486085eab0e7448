// npm run example <name>: runs examples/<name>/main.ts on the source code of this checkout, as it would run with the installed package.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./steps.ts";

const examples = join(root, "examples");
const [name = "", ...args] = process.argv.slice(2);
const folder = join(examples, name);
const program = join(folder, "main.ts");
if (name === "" || !existsSync(program)) {
  const names = readdirSync(examples).filter((each) => existsSync(join(examples, each, "main.ts")));
  console.error(`Usage: npm run example <name>. The examples are ${names.join(", ")}.`);
  process.exit(2);
}

const { exports: entries } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  exports: Record<string, string | { default: string }>;
};

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== "skein" && !specifier.startsWith("skein/")) return next(specifier, context);
    const entry = entries[specifier.replace(/^skein/, ".")];
    if (entry === undefined) throw new Error(`The package has no entry "${specifier}".`);
    const file = typeof entry === "string" ? entry : entry.default;
    const source = file.replace(/^\.\/dist\/(.*)\.js$/, "./src/$1.ts");
    return { url: pathToFileURL(join(root, source)).href, shortCircuit: true };
  },
});

// Each example keeps its sessions in its own folder, and needs no configuration or key of this machine.
process.env.SKEIN_DIR ??= join(folder, ".skein");
process.argv.splice(1, process.argv.length - 1, program, ...args);
await import(pathToFileURL(program).href);
