import { CSPProvider } from "@base-ui/react/csp-provider";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import "./ui/theme.css";
import { applyTheme } from "./ui/theme.ts";

applyTheme();
const root = document.getElementById("root");
if (root === null) throw new Error("The page has no root element.");
createRoot(root).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <App />
    </CSPProvider>
  </StrictMode>,
);
