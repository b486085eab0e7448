import { escapeToLine } from "../../core/text.ts";
import { manifestName } from "./contract.ts";

/** Names of files that come from a model: they become one segment of a path, on whatever system, and nothing else. */

const mostBytes = 200;
/** Devices on Windows, with whatever ending. */
const devices = /^(?:con|prn|aux|nul|clock\$|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?$/iu;

/** What is wrong with a name that is in NFC already; `null`: nothing. */
export function nameProblem(name: string): string | null {
  if (name === "") return "it is empty";
  if (!name.isWellFormed()) return "it is not well-formed Unicode";
  if (new TextEncoder().encode(name).length > mostBytes) return `it is longer than ${mostBytes} bytes`;
  if (escapeToLine(name) !== name) return "it has a control character";
  if (/[/\\:*?"<>|]/.test(name)) return 'it has one of / \\ : * ? " < > |';
  if (name.startsWith(".")) return "it begins with a dot";
  if (/[.\s]$/u.test(name) || /^\s/u.test(name)) return "it begins with a blank, or ends in a blank or dot";
  if (devices.test(name)) return "it is the name of a device";
  return foldedName(name) === manifestName ? `${manifestName} is the list of the files itself` : null;
}

/** Two names that some file system takes for one have one fold. */
export function foldedName(name: string): string {
  return name.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFKC");
}
