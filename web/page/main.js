// Everything that a page of the site does after it has loaded.

import { goThere, startFrame } from "./frame.js";
import { startKeepAll } from "./keep_all.js";
import { keepFiles } from "./kept_files.js";
import { listKeptPages } from "./kept_pages.js";
import { startLive } from "./live/page.js";
import { loopOf } from "./loop.js";
import { startPlace } from "./place.js";
import { startWidgets } from "./play.js";
import { startProgress } from "./progress.js";
import { startSearch } from "./search.js";

startFrame();
startProgress();
startSearch();
startKeepAll();
void listKeptPages();
const python = startLive();
const loop = loopOf(python); // before the widgets, which take a while: what was kept moves what is below
void startWidgets(python)
  .then(() => {
    loop?.begin();
    document.documentElement.dataset.ready = ""; // for tests
    if (location.hash) goThere(); // widgets have moved what is below them
    startPlace();
  })
  .finally(() => keepFiles());
