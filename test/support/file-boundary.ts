import type { FileBoundaryOptions } from "../../src/file-access/file-boundary.ts";
import { FileBoundary } from "../../src/file-access/file-boundary.ts";

/** A file boundary without a root folder unless `options` names one. */
export function fileBoundary(options: Partial<FileBoundaryOptions> = {}): FileBoundary {
  return new FileBoundary({
    rootFolders: [],
    agentFolder: () => null,
    attachments: () => null,
    configurationNames: ["skein.yaml", "skein.yml", "skein.json", ".env"],
    configurationFiles: [],
    agent: () => ({ cwd: null, roots: [] }),
    process: { path: "/", users: "all" },
    checkRootInPlace: () => undefined,
    report: () => undefined,
    ...options,
  });
}
