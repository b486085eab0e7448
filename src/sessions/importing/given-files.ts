import type { FailedRow } from "../../protocol/interchange.ts";
import type { ImportWish } from "../import-session.ts";
import { failedRow } from "./failed-row.ts";
import { listName, readList } from "./openclaw-list.ts";
import { splitPath } from "./paths.ts";
import type { Source, Sources } from "./sources.ts";

/** A file as `sessions.import` is given it: the name is for reports, and no path that anybody opens. */
export interface GivenFile {
  readonly name: string;
  readonly content: string;
}

/**
 * The transcripts among files, each with what a list beside it says. Rows of a list whose transcript was not given are left alone:
 * it may come with the next call.
 */
export function sourcesAmong(files: readonly GivenFile[], agentId: string): Sources {
  const failed: FailedRow[] = [];
  const lists = new Map<string, { agentId: string; wishes: ReadonlyMap<string, ImportWish> }>();
  for (const { name: file, content } of files.filter(({ name }) => isList(name))) {
    const { folder } = splitPath(file);
    try {
      const list = readList({ file, folder }, new TextEncoder().encode(content), agentId);
      const wishes = new Map(list.rows.map(({ name, wish }) => [name, wish]));
      lists.set(folder, { agentId: list.agentId, wishes });
      failed.push(...list.failed);
    } catch (error) {
      failed.push(failedRow(file, error));
    }
  }
  const sources = files
    .filter(({ name }) => !isList(name))
    .map(({ name: file, content }): Source => {
      const { folder, name } = splitPath(file);
      const list = lists.get(folder);
      const wish = list?.wishes.get(name) ?? (list === undefined ? {} : { agentId: list.agentId });
      return { file, wish, isNamed: true, read: () => new TextEncoder().encode(content) };
    });
  return { sources: rowsFirst(sources), failed };
}

function isList(file: string): boolean {
  return splitPath(file).name === listName;
}

/** Those of a list before the others, who must not take their keys. */
function rowsFirst(sources: readonly Source[]): Source[] {
  const isRow = ({ wish }: Source) => wish.sessionId !== undefined;
  return [...sources.filter(isRow), ...sources.filter((each) => !isRow(each))];
}
