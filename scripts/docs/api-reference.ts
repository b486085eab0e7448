import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { root, runStep } from "../steps.ts";

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** The entries of the package: the name that users import, and its source file. */
function readEntries(): { name: string; file: string }[] {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  return Object.entries(exports).flatMap(([path, target]) =>
    typeof target === "string"
      ? []
      : [{ name: path.replace(".", "skein"), file: `src/${basename(target.types, ".d.ts")}.ts` }],
  );
}

/**
 * Writes the pages of the library's reference to `<folder>/api`, from the doc comments and types of every entry.
 * `tools` is the folder in which TypeDoc is installed, with the TypeScript version that it supports.
 */
export async function writeApiReference(tools: string, folder: string): Promise<readonly string[]> {
  const entries = readEntries();
  const sources = join(tools, "entries");
  rmSync(sources, { recursive: true, force: true });
  mkdirSync(sources, { recursive: true });
  for (const { name, file } of entries) {
    const text = `/**\n * @module ${name}\n */\nexport * from "${join(root, file)}";\n`;
    writeFileSync(join(sources, basename(file)), text);
  }
  const compilerOptions = { typeRoots: [join(root, "node_modules/@types")] };
  const tsconfig = { extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] };
  writeFileSync(join(sources, "tsconfig.json"), JSON.stringify(tsconfig));
  const options = {
    name: "The library",
    entryPoints: [join(sources, "*.ts")],
    tsconfig: join(sources, "tsconfig.json"),
    plugin: ["typedoc-plugin-markdown"],
    out: join(folder, "api"),
    readme: "none",
    disableSources: true,
    excludePrivate: true,
    excludeInternal: true,
    // `npm run check` reports type errors, with the project's own compiler.
    skipErrorChecking: true,
    validation: { notExported: false },
    logLevel: "Warn",
    outputFileStrategy: "members",
    entryFileName: "index",
    pageTitleTemplates: { index: "The library", module: "{name}", member: "{name}" },
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    indexFormat: "table",
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    propertiesFormat: "table",
    typeDeclarationFormat: "table",
    tableColumnSettings: { hideModifiers: true, hideInherited: true, hideOverrides: true },
  };
  writeFileSync(join(tools, "typedoc.json"), JSON.stringify(options));
  const typedoc = join(tools, "node_modules/typedoc/bin/typedoc");
  await runStep("reference of the library", process.execPath, [
    typedoc,
    "--options",
    join(tools, "typedoc.json"),
  ]);
  return entries.map(({ name }) => name);
}
