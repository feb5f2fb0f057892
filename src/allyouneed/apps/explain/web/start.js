// The page that `allyouneed explain` writes: its data is in the page.
showExplanation(document.querySelector(".explanation"), JSON.parse(document.getElementById("trace").textContent));
