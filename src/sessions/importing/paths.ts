/** Folder and name of a path, of whatever machine it comes from; a bare name is in the folder "". */
export function splitPath(path: string): { readonly folder: string; readonly name: string } {
  const end = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return { folder: path.slice(0, Math.max(0, end)), name: path.slice(end + 1) };
}
