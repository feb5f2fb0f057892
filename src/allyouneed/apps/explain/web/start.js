// The page that `allyouneed explain` writes. Its data, for one translation or two, is in the page.
const data = JSON.parse(document.getElementById("trace").textContent);
(data.traces ? showComparison : showExplanation)(document.querySelector(".explanation"), data);
