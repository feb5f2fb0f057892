// The page that `allyouneed explain` writes: its data, of one translation or of two, is in the page.
const data = JSON.parse(document.getElementById("trace").textContent);
(data.traces ? showComparison : showExplanation)(document.querySelector(".explanation"), data);
