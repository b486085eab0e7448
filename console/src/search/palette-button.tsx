import { TextSearch } from "lucide-react";
import { Suspense, useEffect, useState } from "react";
import { Kbd } from "../ui/keys.tsx";
import { lazyPart } from "../ui/lazy-part.tsx";
import { PageBoundary } from "../ui/page-boundary.tsx";
import styles from "./palette-button.module.css";

const Palette = lazyPart(() => import("./palette.tsx"));

/** Opens the palette, which Mod+K also does from anywhere. */
export function PaletteButton() {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (
        event.key.toLowerCase() !== "k" ||
        !(event.ctrlKey || event.metaKey) ||
        event.altKey ||
        event.shiftKey
      )
        return;
      event.preventDefault();
      setIsOpen((before) => !before);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <button type="button" className={styles.button} onClick={() => setIsOpen(true)}>
        <TextSearch size={16} aria-hidden />
        Go to… <Kbd keys="Mod+K" />
      </button>
      {isOpen && (
        <PageBoundary path="">
          <Suspense fallback={null}>
            <Palette onClose={() => setIsOpen(false)} />
          </Suspense>
        </PageBoundary>
      )}
    </>
  );
}
