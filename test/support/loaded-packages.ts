// Preloaded with --import. When the process exits, it prints the packages it has loaded to stderr.
import { writeSync } from "node:fs";
import { registerHooks } from "node:module";

const packages = new Set<string>();
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(found.url)?.[1];
    if (name !== undefined) packages.add(name);
    return found;
  },
});
process.on("exit", () => void writeSync(2, `\nloaded ${JSON.stringify([...packages])}\n`));
