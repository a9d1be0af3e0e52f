// Which searches take part in an experiment, and in what order their results are shown.
// The same decisions as rankdrift's assigning.py makes; Node's own crypto is all it needs.
"use strict";
const { createHash } = require("crypto");

const HALF = "80000000";
const digits = (what, salt, unit) =>
  createHash("md5").update(`${what}:${salt}:${unit}`, "utf8").digest("hex").slice(0, 8);
const below = (share) =>
  share >= 1 ? "g" : Math.floor(share * 4294967296).toString(16).padStart(8, "0");
const deepest = (design) =>
  design.kind === "swaps" ? Math.max(...design.swaps.flat()) : design.last;

// The ranks before, in the order in which to show them; null for a search that takes no part.
function assign(experiment, unit, size) {
  const { salt, design } = experiment;
  if (size < deepest(design) || !experiment.on) return null;
  if (!(digits("in", salt, unit) < below(experiment.share))) return null;
  const order = Array.from({ length: size }, (_, place) => place + 1);
  if (design.kind === "swaps") {
    if (digits("swap", salt, unit) < HALF) {
      const which = digits("which", salt, unit);
      let upto = 0;
      let chosen = design.swaps[design.swaps.length - 1];
      for (let k = 0; k < design.swaps.length; k++) {
        upto += design.chances[k];
        if (which < below(upto)) { chosen = design.swaps[k]; break; }
      }
      const [i, j] = chosen;
      order[i - 1] = j;
      order[j - 1] = i;
    }
  } else if (design.kind === "fairpairs") {
    const first = design.first + (digits("first", salt, unit) < HALF ? 1 : 0);
    for (let rank = first; rank < design.last; rank += 2) {
      if (digits(`pair ${rank}`, salt, unit) < HALF) {
        order[rank - 1] = rank + 1;
        order[rank] = rank;
      }
    }
  } else {
    const drawn = [];
    for (let r = design.first; r <= design.last; r++) drawn.push([digits(`rank ${r}`, salt, unit), r]);
    drawn.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
    drawn.forEach(([, rank], place) => { order[design.first - 1 + place] = rank; });
  }
  return order;
}

// The docs in the order in which to show them, the rank before of each, and whether to log them as
// randomised.
function arrange(experiment, unit, docs) {
  const order = assign(experiment, unit, docs.length);
  if (order === null) return { docs, original: docs.map((_, place) => place + 1), randomised: false };
  return { docs: order.map((rank) => docs[rank - 1]), original: order, randomised: true };
}

module.exports = { arrange, assign };
